import { describe, expect, it } from 'vitest';
import { useLocalPool } from '../support/local.js';
import { variablesOf, type Program } from '../support/program.js';
import { guardOf, start } from './support.js';

describe('a process that ends during a lease', () => {
  const used = useLocalPool();

  function leasing(ending: string): Program {
    return start('leasing', [ending], variablesOf(used.local));
  }

  /** A process waits at most 2 s for its release process. */
  async function expectEnd({ exit }: Program, end: [number | null, NodeJS.Signals | null]): Promise<void> {
    expect(await exit).toEqual(end);
    await expect.poll(() => used.local.stats().leased).toBe(0);
  }

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'releases the browser on %s, and still ends by this signal',
    async (signal) => {
      const program = leasing('hang');
      await program.prints(/leased/);
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
    await program.prints(/leased/);
    expect(guardOf(program).args).not.toContain(used.local.token);
    program.child.kill('SIGKILL');
    await expectEnd(program, [null, 'SIGKILL']);
  });

  it('does not end a process whose own handler takes the signal, and releases the browser when the handler exits', async () => {
    const program = leasing('own-handler');
    await program.prints(/ready/);
    program.child.kill('SIGTERM');
    await expectEnd(program, [3, null]);
    expect(program.stdout).toContain('my own handler');
  });
});
