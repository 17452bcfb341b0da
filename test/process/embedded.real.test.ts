import { expect, it } from 'vitest';
import { useWholeBrowser } from '../support/whole-browser.js';
import { start } from './support.js';

useWholeBrowser();

// A hook after each test file checks that no browser and no profile folder is left.
it.each([
  ['ends by SIGTERM', 'SIGTERM', 'hang'],
  ['removes a profile to which other processes write', 'SIGTERM', 'late-files'],
] as const)(
  'a process with a local pool and a lease %s, and leaves no browser',
  async (_what, signal, way) => {
    const program = start('embedded', [way]);
    await program.prints(/leased/);
    program.child.kill(signal);
    expect(await program.exit).toEqual([null, signal]);
  },
);

it('a process with a local pool and a lease keeps its exit code, and leaves no browser', async () => {
  expect(await start('embedded', ['exit']).exit).toEqual([7, null]);
});
