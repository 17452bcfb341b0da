import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FakeService, found, reply, session, type SeenRequest } from '../support/fake-service.js';
import { kill } from '../support/processes.js';
import { startProgram, variablesOf } from '../support/program.js';
import { guardOf, helpers, programPath, start } from './support.js';

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
  service.script('acquire', (_response, request) => {
    const token = programOf(request);
    asked.add(token);
    // A service that does not notice the end of the connection.
    setTimeout(() => granted.add(token), rows.find((row) => row.token === token)!.delay);
  });
  service.script('search', (response, request) => {
    const token = programOf(request);
    const failed = failures.get(token) ?? 0;
    failures.set(token, failed + 1);
    if (failed < (rows.find((row) => row.token === token)?.failures ?? 0)) reply(response, { status: 503 });
    else void found(...(granted.has(token) ? [token] : []))(response, request);
  });
  service.script('release', { status: 204 });
  await Promise.all(
    rows.map(async ({ token }) => {
      const environment = variablesOf({ baseUrl: service.baseUrl, token });
      const program = start('stages', ['acquire', 'guarded poll=25000'], environment);
      await expect.poll(() => asked.has(token)).toBe(true);
      if (token === 'guard-dies-first') {
        const { pid } = guardOf(program);
        kill({ pid: Number(pid), command: '' });
        await expect.poll(() => helpers().some((helper) => helper.pid !== Number(pid))).toBe(true);
        await expect.poll(() => guardOf(program)).not.toMatchObject({ pid });
      }
      program.child.kill('SIGKILL');
      await program.exit;
    }),
  );
  expect(service.released).toEqual([]);
  await expect.poll(() => service.released.length).toBe(rows.length);
  expect(new Set(service.released)).toEqual(new Set(rows.map(({ token }) => token)));
});

it.each(['', 'guarded'])(
  'a search for the browser of a lost response goes on after the end of the program (%s)',
  async (way) => {
    const leased: { id: string; mark: string }[] = [];
    let asked = 0;
    service.script('acquire', (response, { body }) => {
      response.socket!.destroy();
      const lease = { id: `session-${++asked}`, mark: (body!['tags'] as Tags)['pooled-browser-lease'] };
      setTimeout(() => leased.push(lease), 4000);
    });
    service.script('search', (response, request) => {
      const theirs = leased.filter(({ mark }) => request.path.includes(mark));
      void found(...theirs.map(({ id }) => id))(response, request);
    });
    service.script('release', { status: 204 });
    const program = start('stages', ['acquire', way], variablesOf(service.options));
    expect(await program.exit).toEqual([1, null]);
    expect(program.stderr).toContain('ERR_POOL_NO_RESPONSE');
    expect(leased).toEqual([]);
    // The first request is repeated once.
    await expect.poll(() => service.released.length).toBe(2);
    expect(new Set(service.released)).toEqual(new Set(['session-1', 'session-2']));
  },
);

it.each([
  ['SIGKILL', null],
  ['SIGTERM', null],
  ['exit', 7],
] as const)('a lease can outlive its process (%s), and ends at its time', async (end, code) => {
  const until = 5000;
  service.script('acquire', { status: 200, json: session() });
  let releasedAt: number | undefined;
  service.script('release', (response) => {
    releasedAt ??= performance.now();
    reply(response, { status: 204 });
  });
  const program = startProgram(['--import', 'tsx', programPath('keeping', 'ts'), end, String(until)], {
    TMPDIR: process.env['TMPDIR'],
    ...variablesOf(service.options),
  });
  await program.prints(/leased/);
  const leasedAt = performance.now();
  if (end !== 'exit') program.child.kill(end);
  expect(await program.exit).toEqual([code, end === 'exit' ? null : end]);
  await sleep(500);
  expect(service.released).toEqual([]);
  await expect.poll(() => service.released).toEqual(['session-1']);
  // The time began before its line was read here.
  expect(releasedAt! - leasedAt).toBeGreaterThan(until / 2);
});
