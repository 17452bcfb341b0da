import { afterEach, beforeEach, expect, it } from 'vitest';
import { FakeService, found, reply, type SeenRequest } from '../support/fake-service.js';
import { kill } from '../support/processes.js';
import { variablesOf } from '../support/program.js';
import { guardOf, helpers, start } from './support.js';

interface Tags {
  'pooled-browser-lease': string;
}

let service: FakeService;

beforeEach(async () => {
  service = await FakeService.start();
});

afterEach(async () => {
  await expect.poll(helpers).toEqual([]);
  await service.close();
});

const programOf = ({ headers }: SeenRequest) => headers.authorization!.replace('Bearer ', '');

it('a browser that the service leases long after SIGKILL is found and released by the guard', async () => {
  /** `delay`: from the end of the program to the lease. */
  const rows = [
    { token: 'after-2-s', delay: 2000 },
    { token: 'after-6-s', delay: 6000 },
    { token: 'after-20-s', delay: 20_000 },
    { token: 'failed-searches', delay: 2000, failures: 3 },
    { token: 'guard-dies-first', delay: 4000 },
  ];
  const asked = new Set<string>();
  const granted = new Set<string>();
  const failures = new Map<string, number>();
  // A service that does not notice the end of the connection.
  service.script('acquire', (_response, request) => void asked.add(programOf(request)));
  service.script('search', (response, request) => {
    const token = programOf(request);
    const failed = failures.get(token) ?? 0;
    failures.set(token, failed + 1);
    if (failed < (rows.find((row) => row.token === token)?.failures ?? 0)) reply(response, { status: 503 });
    else void found(...(granted.has(token) ? [token] : []))(response, request);
  });
  service.script('release', { status: 204 });
  await Promise.all(
    rows.map(async ({ token, delay }) => {
      const environment = variablesOf({ baseUrl: service.baseUrl, token });
      const program = start('stages', ['acquire', 'guarded beats poll=25000'], environment);
      await expect.poll(() => asked.has(token)).toBe(true);
      if (token === 'guard-dies-first') {
        const { pid } = guardOf(program);
        kill({ pid: Number(pid), command: '' });
        await expect.poll(() => helpers().some((helper) => helper.pid !== Number(pid))).toBe(true);
        await expect.poll(() => guardOf(program)).not.toMatchObject({ pid });
        // On a busy machine, a guard can run before the program has sent it what it must release.
        const seen = Date.now();
        await expect.poll(() => Number(program.stdout.trim().split('\n').at(-1))).toBeGreaterThan(seen);
      }
      program.child.kill('SIGKILL');
      await program.exit;
      expect(service.released).not.toContain(token);
      setTimeout(() => granted.add(token), delay);
    }),
  );
  await expect.poll(() => service.released.length).toBe(rows.length);
  expect(new Set(service.released)).toEqual(new Set(rows.map(({ token }) => token)));
});

it.each(['', 'guarded'])(
  'a search for the browser of a lost response goes on after the end of the program (%s)',
  async (way) => {
    const requested: { id: string; mark: string }[] = [];
    let leased: typeof requested = [];
    service.script('acquire', (response, { body }) => {
      response.socket!.destroy();
      const mark = (body!['tags'] as Tags)['pooled-browser-lease'];
      requested.push({ id: `session-${requested.length + 1}`, mark });
    });
    service.script('search', (response, request) => {
      const theirs = leased.filter(({ mark }) => request.path.includes(mark));
      void found(...theirs.map(({ id }) => id))(response, request);
    });
    service.script('release', { status: 204 });
    const program = start('stages', ['acquire', way], variablesOf(service.options));
    expect(await program.exit).toEqual([1, null]);
    expect(program.stderr).toContain('ERR_POOL_NO_RESPONSE');
    setTimeout(() => (leased = requested), 2000);
    // The first request is repeated once.
    await expect.poll(() => service.released.length).toBe(2);
    expect(new Set(service.released)).toEqual(new Set(['session-1', 'session-2']));
  },
);
