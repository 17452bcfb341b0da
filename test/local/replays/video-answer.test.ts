import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, expect, it } from 'vitest';
import { videoAnswer } from '../../../src/local/replays/video-answer.js';
import type { Video } from '../../../src/recorder/video-file.js';

const folder = mkdtempSync(join(tmpdir(), 'video-answer-'));
afterAll(() => rmSync(folder, { recursive: true }));
const served = join(folder, 'served.webm');
writeFileSync(served, Buffer.from('0123456789'));
const video: Video = { path: served, type: 'video/webm', size: 10, duration: 1000, width: 2, height: 2 };

it.each([
  // The whole video without a range, and instead of several ranges or another unit.
  [undefined, '0123456789', undefined],
  ['bytes=0-1,3-4', '0123456789', undefined],
  ['seconds=1-2', '0123456789', undefined],
  ['bytes=2-4', '234', '2-4'],
  ['bytes=7-', '789', '7-9'],
  ['bytes=-2', '89', '8-9'],
  ['bytes=-99', '0123456789', '0-9'],
  ['bytes=8-99', '89', '8-9'],
])('answers the range %s with the bytes %s', async (range, bytes, sent) => {
  const { status, content, headers } = videoAnswer(video, { headers: { range } });
  expect(status).toBe(sent === undefined ? 200 : 206);
  expect(headers).toEqual({
    'accept-ranges': 'bytes',
    ...(sent !== undefined && { 'content-range': `bytes ${sent}/10` }),
  });
  expect(content).toMatchObject({ type: 'video/webm', size: bytes.length });
  expect(await text(content?.data as Readable)).toBe(bytes);
});

it.each(['bytes=10-', 'bytes=99-100', 'bytes=4-2', 'bytes=-0'])(
  'refuses %s with the size of the video',
  (range) => {
    const refusal = expect.objectContaining({
      status: 416,
      extras: { headers: { 'content-range': 'bytes */10' } },
    });
    expect(() => videoAnswer(video, { headers: { range } })).toThrow(refusal);
  },
);
