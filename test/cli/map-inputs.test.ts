import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openInputs, readInputCheck } from '../../src/cli/map-inputs.js';

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'inputs-'))));
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

const SIGNAL = new AbortController().signal;
/** U+0A0A and U+0D0A contain the bytes of a line break in UTF-16. */
const LIST = 'https://a.test/ü\r\n\r\n\u0A0A\u0D0A 😀\nlast';
const LINES = ['https://a.test/ü', '\u0A0A\u0D0A 😀', 'last'];

const utf16 = (text: string) => Buffer.from(text, 'utf16le');
const ENCODED: [string, Buffer][] = [
  ['UTF-8', Buffer.from(LIST)],
  ['UTF-8 with a byte order mark', Buffer.from(`\uFEFF${LIST}`)],
  ['UTF-16LE', utf16(`\uFEFF${LIST}`)],
  ['UTF-16BE', utf16(`\uFEFF${LIST}`).swap16()],
];

async function collect(lines: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const line of lines) all.push(line);
  return all;
}

async function readFile(bytes: Buffer): Promise<string[]> {
  const path = join(folder, 'list.txt');
  await writeFile(path, bytes);
  using inputs = await openInputs(path, SIGNAL, () => {});
  expect(inputs.total).toBe(LINES.length);
  return await collect(inputs.lines);
}

/** Reads the bytes one by one, as a slow pipe. */
async function readStdin(bytes: Buffer): Promise<string[]> {
  const stdin = Readable.from([...bytes].map((byte) => Buffer.from([byte])));
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(stdin as unknown as typeof process.stdin);
  using inputs = await openInputs('-', SIGNAL, () => {});
  return await collect(inputs.lines);
}

it.each(ENCODED)('a list in %s is read, as a file and from stdin', async (_encoding, bytes) => {
  expect(await readFile(bytes)).toEqual(LINES);
  expect(await readStdin(bytes)).toEqual(LINES);
});

it.each<[string, Buffer, string]>([
  ['Latin-1', Buffer.from('a\nb\ncaf\xe9\nd', 'latin1'), 'line 3 is not text in UTF-8'],
  ['UTF-8 that ends within a character', Buffer.from('a\nü').subarray(0, -1), 'line 2 is not text in UTF-8'],
  ['UTF-16 without a byte order mark', utf16('a\nb'), 'line 1 is not text in UTF-8'],
  ['UTF-16 with half a character', utf16('\uFEFFa\nb\n\uD83D\n'), 'line 3 is not text in UTF-16LE'],
  ['UTF-32', Buffer.from([0xff, 0xfe, 0, 0, 0x61, 0, 0, 0]), 'line 1 is not text in UTF-16LE'],
])('%s is refused with exit code 2, the line and what to do', async (_encoding, bytes, message) => {
  const refusal = {
    exitCode: 2,
    message: expect.stringContaining(`${message}. Save the list as UTF-8`) as string,
  };
  await expect(readFile(bytes)).rejects.toMatchObject(refusal);
  await expect(readStdin(bytes)).rejects.toMatchObject(refusal);
});

/** Earlier results with their index and input, such as `0a`, and the inputs now. */
it.each([
  ['the same inputs', '0a 1b', 'a b', undefined],
  ['more inputs at the end', '1b 0a', 'a b c', undefined],
  ['each input that --force has accepted', '0a 1b 1c', 'a c', undefined],
  ['no other input', '0a 1b', 'a c', /input 2 is c, and was b\..*--force/],
])('a job that continues accepts %s', async (_what, earlier, now, refusal) => {
  const path = join(folder, 'results.jsonl');
  const records = earlier.split(' ').map(([index, input]) => ({ index: Number(index), input, attempts: 1 }));
  const lines = records.map((record) => `${JSON.stringify({ status: 'fulfilled', ...record })}\n`);
  await writeFile(path, lines.join(''));
  const check = await readInputCheck(path);
  const checkAll = () => now.split(' ').forEach((input, index) => check(input, index));
  if (refusal) expect(checkAll).toThrow(refusal);
  else expect(checkAll).not.toThrow();
});
