import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Readable } from 'node:stream';
import { afterAll, expect, it } from 'vitest';
import { HttpFault } from '../../../src/local/http/http-fault.js';
import { filmAnswer } from '../../../src/local/replays/film-answer.js';
import type { Film } from '../../../src/local/replays/local-replay.js';

const folder = mkdtempSync(join(tmpdir(), 'film-'));
afterAll(() => rmSync(folder, { recursive: true }));

const path = join(folder, 'film.webm');
writeFileSync(path, '0123456789');
const film: Film = { path, type: 'video/webm', size: 10, duration: 1000, width: 2, height: 2 };

it.each([
  ['the whole without a range', undefined, '0123456789'],
  ['the whole instead of several ranges', 'bytes=0-1,3-4', '0123456789'],
  ['the whole for a unit it does not know', 'seconds=1-2', '0123456789'],
])('answers %s', async (_what, range, bytes) => {
  const { status, content, headers } = filmAnswer(film, { headers: { range } });
  expect(status).toBe(200);
  expect(headers).toEqual({ 'accept-ranges': 'bytes' });
  expect(content).toMatchObject({ type: 'video/webm', size: bytes.length });
  expect(await text(content?.data as Readable)).toBe(bytes);
});

it.each([
  ['bytes=2-4', '234', '2-4'],
  ['bytes=7-', '789', '7-9'],
  ['bytes=-2', '89', '8-9'],
  ['bytes=-99', '0123456789', '0-9'],
  ['bytes=8-99', '89', '8-9'],
])('answers %s with that part', async (range, bytes, sent) => {
  const { status, content, headers } = filmAnswer(film, { headers: { range } });
  expect(status).toBe(206);
  expect(headers).toEqual({ 'accept-ranges': 'bytes', 'content-range': `bytes ${sent}/10` });
  expect(content?.size).toBe(bytes.length);
  expect(await text(content?.data as Readable)).toBe(bytes);
});

it.each(['bytes=10-', 'bytes=99-100', 'bytes=4-2', 'bytes=-0'])(
  'refuses %s with the size there is',
  (range) => {
    const fault = catchFault(() => filmAnswer(film, { headers: { range } }));
    expect(fault).toMatchObject({ status: 416, extras: { headers: { 'content-range': 'bytes */10' } } });
  },
);

function catchFault(call: () => unknown): HttpFault {
  try {
    call();
  } catch (error) {
    if (error instanceof HttpFault) return error;
  }
  throw new Error('Nothing was refused');
}
