import { chownSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startProgram, type Program } from '../support/program.js';

/** Creates two folders, prints their names, and waits. */
const SCRIPT = `
  import { basename } from 'node:path';
  import { makeTemporaryFolder } from './src/shared/temporary-folder.ts';
  console.log(['artifacts', 'replays'].map((kind) => basename(makeTemporaryFolder(kind))).join());
  setInterval(() => {}, 1000);`;

/** @param folder Its TMPDIR, if that is another program's. */
async function start(folder?: string): Promise<{ program: Program; names: string[] }> {
  const args = ['--import', 'tsx', '--input-type=module', '-e', SCRIPT];
  const program = startProgram(args, folder === undefined ? {} : { TMPDIR: folder });
  await program.prints(/,.+\n/);
  return { program, names: program.stdout.trim().split(',') };
}

it('a folder of a killed process is removed by the next process that needs one; those of others stay', async () => {
  const killed = await start();
  const { folder } = killed.program;
  const running = await start(folder);
  const mark = killed.names[0]!.split('-')[3]!;
  await killed.program.end('SIGKILL');
  // Of another machine or container; of another user.
  const elsewhere = mark.replace(/^./, (first) => (first === '0' ? '1' : '0'));
  const isRoot = process.getuid?.() === 0;
  const others = [elsewhere, ...(isRoot ? [mark] : [])].map(
    (text) => `pooled-browser-artifacts-${text}-abcdef`,
  );
  for (const name of others) mkdirSync(join(folder, name));
  if (isRoot) chownSync(join(folder, others[1]!), 12_345, 12_345);
  const next = await start(folder);
  const left = () => readdirSync(folder).filter((name) => name.startsWith('pooled-browser-'));
  await expect.poll(left).toEqual([...running.names, ...others, ...next.names].toSorted());
});
