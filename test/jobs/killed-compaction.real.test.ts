import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { range } from './support.js';

const path = join(tmpdir(), 'outcomes.jsonl');
/** Code that lets the renaming of a file print a word, and never end. */
const STOP_IN_RENAME = `const { syncBuiltinESMExports } = process.getBuiltinModule('node:module');
  process.getBuiltinModule('node:fs/promises').rename = () => {
    process.stdout.write('renames');
    return new Promise((resolve) => setTimeout(resolve, 900_000));
  };
  syncBuiltinESMExports();`;

it('loses no outcome when the process is killed while it removes the old lines', async () => {
  const inputs = 2000;
  const line = (index: number, status: string) =>
    `${JSON.stringify({ status, index, input: 'x'.repeat(100) + index, attempts: 1, value: 1, reason: { message: 'failed' } })}\n`;
  const text = (status: string) =>
    range(inputs)
      .map((index) => line(index, status))
      .join('');
  // As a killed job leaves the file: each input has failed, and succeeded later.
  await writeFile(path, text('rejected') + text('fulfilled'));
  const before = await readFile(path, 'utf8');
  const { href } = new URL('../../src/index.js', import.meta.url);
  // A job without inputs opens its checkpoint and closes it.
  const program = `const { BrowserPool, mapPooledBrowsers } = await import('${href}');
    const pool = new BrowserPool('none', { baseUrl: 'http://127.0.0.1:1', token: 'none' });
    const connector = { library: 'none', refusal: () => undefined, load: async () => {}, connect() {} };
    await mapPooledBrowsers(pool, [], () => {}, { checkpoint: '${path}', connector });`;
  const argsOf = (code: string) => ['--import', 'tsx', '--input-type=module', '-e', code];

  // Killed between the last line of the new file and its rename. Before, nothing changes the old file.
  const stopped = spawn(process.execPath, argsOf(STOP_IN_RENAME + program), {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  expect(String(await once(stopped.stdout, 'data'))).toBe('renames');
  expect(await readFile(`${path}.new`, 'utf8')).toBe(text('fulfilled'));
  stopped.kill('SIGKILL');
  await once(stopped, 'close');
  expect(await readFile(path, 'utf8')).toBe(before);

  const child = spawn(process.execPath, argsOf(program), { stdio: 'inherit' });
  expect(await once(child, 'close')).toEqual([0, null]);
  expect(await readFile(path, 'utf8')).toBe(text('fulfilled'));
  expect([existsSync(`${path}.new`), existsSync(`${path}.lock`)]).toEqual([false, false]);
});
