import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What the test files of a worker share. */

/**
 * TMPDIR while this worker lives; empty when a test file begins. Libraries read TMPDIR once. Short: Chromium creates a Unix socket in
 * it, whose path may have about a hundred characters.
 */
export const folder = mkdtempSync(join(realpathSync(tmpdir()), 'pb-'));
process.env['TMPDIR'] = folder;
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));

const ends: (() => unknown)[] = [];

/** Does something after all tests of the current file. Unlike `afterAll`, this also works inside a test. */
export function atEndOfFile(end: () => unknown): void {
  ends.push(end);
}

/** Does what the current file left for its end. */
export async function endFile(): Promise<void> {
  await Promise.all(ends.splice(0).map((end) => end()));
}
