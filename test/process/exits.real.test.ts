import { describe, expect, it } from 'vitest';
import { useLocalPool } from '../support/local.js';
import { guardOf, start, type Program } from './support.js';

describe('a process that ends during a lease', () => {
  const used = useLocalPool();

  function leasing(ending: string): Program {
    const { baseUrl, token } = used.local;
    return start('leasing', [ending], { BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token });
  }

  /** A process waits at most 2 s for its release process. */
  async function expectEnd({ ended }: Program, end: [number | null, NodeJS.Signals | null]): Promise<void> {
    expect(await ended).toEqual(end);
    await expect.poll(() => used.local.stats().leased).toBe(0);
  }

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'releases the browser on %s, and still ends by this signal',
    async (signal) => {
      const program = leasing('hang');
      await program.says('leased');
      expect(used.local.stats().leased).toBe(1);
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
    await program.says('leased');
    expect(guardOf(program).args).not.toContain(used.local.token);
    program.child.kill('SIGKILL');
    await expectEnd(program, [null, 'SIGKILL']);
  });

  it('does not end a process whose own handler takes the signal, and releases the browser when the handler exits', async () => {
    const program = leasing('own-handler');
    await program.says('ready');
    program.child.kill('SIGTERM');
    await expectEnd(program, [3, null]);
    expect(program.output()).toContain('my own handler');
  });
});
