import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextMacrotask, setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TOKEN } from '../support/fake-service.js';
import { PlayedLease } from '../support/played-lease.js';
import { kill } from '../support/processes.js';
import { startProgram, variablesOf, type Program } from '../support/program.js';
import { guardOf, helpers, start } from './support.js';

describe('a process that ends during a lease', () => {
  /** A service that counts the releases of its browsers. */
  let played: PlayedLease;
  beforeAll(async () => (played = await PlayedLease.start()));
  afterAll(() => played[Symbol.asyncDispose]());
  beforeEach(() => void (played.service.requests.length = 0));
  const leases = () => played.service.of('acquire').length;

  function leasing(ending: string): Program {
    return start('leasing', [ending], variablesOf(played.service.options));
  }

  /** A process waits at most 2 s for its release process. */
  async function expectEnd({ exit }: Program, end: [number | null, NodeJS.Signals | null]): Promise<void> {
    expect(await exit).toEqual(end);
    expect(leases()).toBeGreaterThan(0);
    await expect.poll(() => played.releases.length).toBe(leases());
  }

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'releases the browser on %s, and still ends by this signal',
    async (signal) => {
      const program = leasing('hang');
      await program.prints(/leased/);
      expect([leases(), played.releases]).toEqual([1, []]);
      program.child.kill(signal);
      await expectEnd(program, [null, signal]);
    },
  );

  it.each([
    ['process.exit', 'exit', 7],
    ['process.exit while its release is under way', 'exit-after-run', 7],
    ['an uncaught exception', 'throw', 1],
    ['an unhandled rejection', 'reject', 1],
    ['an empty event loop', 'empty', 0],
    ['a release in time', 'release', 0],
  ])('releases the browser at %s, and keeps the exit code', async (_name, ending, code) => {
    await expectEnd(leasing(ending), [code, null]);
  });

  it('releases the browser after SIGKILL with releaseOnCrash: true, through a process whose arguments contain no secret', async () => {
    const program = leasing('watched');
    await program.prints(/leased/);
    expect(guardOf(program).args).not.toContain(TOKEN);
    program.child.kill('SIGKILL');
    await expectEnd(program, [null, 'SIGKILL']);
  });

  it('releases the browsers of two copies of this library on SIGTERM, and still ends by this signal', async () => {
    using copy = copyOfPackage();
    // The release of the second copy takes longer: the first one must not end the process before.
    const late = { status: 204, delay: 300 };
    played.service.script('release', { status: 204 }, late);
    const program = start('copies', [copy.path], variablesOf(played.service.options));
    await program.prints(/leased/);
    program.child.kill('SIGTERM');
    await expectEnd(program, [null, 'SIGTERM']);
    expect(played.releases).toHaveLength(2);
  });

  it('does not end a process whose own handler takes the signal, and releases the browser when the handler exits', async () => {
    const program = leasing('own-handler');
    await program.prints(/ready/);
    program.child.kill('SIGTERM');
    await expectEnd(program, [3, null]);
    expect(program.stdout).toContain('my own handler');
  });
});

describe('the process that releases browsers after this one', () => {
  it('is one process, also if it is killed just before a new lease', async () => {
    await using played = await PlayedLease.start();
    const options = { releaseOnCrash: true } as const;
    const first = await played.lease(options);
    const [guard] = helpers();
    kill(guard!);
    await expect.poll(helpers).toEqual([]);
    await nextMacrotask();
    await first.release();
    const second = await played.lease(options);
    await expect.poll(helpers).toHaveLength(1);
    // The guard of the first lease would be replaced by now.
    await sleep(300);
    await second.release();
    await expect.poll(helpers).toEqual([]);
    expect(played.releases).toHaveLength(2);
  });

  it('releases what it knows if this process was killed while it wrote a line', async () => {
    await using played = await PlayedLease.start();
    const { baseUrl } = played.service;
    const to = { url: `${baseUrl}/browser_pools/test/release`, method: 'POST', auth: 'none' };
    const requestOf = (reuse: boolean) => ({ ...to, body: { session_id: 'session-1', reuse } });
    const ticket = { id: 'session-1', reuse: requestOf(true), destroy: requestOf(false) };
    const held = JSON.stringify({ lease: 1, held: { ticket, isReuseSent: false } });
    const { child, ended } = startProgram(['dist/release-process.js'], {}, { stdin: 'pipe' });
    child.stdin!.end([JSON.stringify({ route: {} }), held, held.slice(0, -20)].join('\n'));
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
    expect(played.releases).toEqual([{ session_id: 'session-1', reuse: false }]);
  });
});

/** A second copy of the built package, as a dependency of a dependency can have it. */
function copyOfPackage(): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'copy-'));
  for (const part of ['dist', 'package.json']) cpSync(part, join(path, part), { recursive: true });
  symlinkSync(join(process.cwd(), 'node_modules'), join(path, 'node_modules'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}
