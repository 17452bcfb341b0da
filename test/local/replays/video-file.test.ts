import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, expect, it } from 'vitest';
import { videoAnswer, VideoFile, type FilePart, type Video } from '../../../src/local/replays/video-file.js';

const folder = mkdtempSync(join(tmpdir(), 'video-file-'));
const path = join(folder, 'video.webm');
afterAll(() => rmSync(folder, { recursive: true }));

it('reserves more space than requested, and releases it after a repeated attempt', async () => {
  const file = new VideoFile(path, failed);
  const expected = 3 * 1024 * 1024;
  file.reserve(expected);
  await expect.poll(() => file.reserved).toBeGreaterThan(expected);
  expect(statSync(`${path}.part`).size).toBe(file.reserved);
  const crash = async (stream: WritableStream<FilePart>) => {
    await write('a longer text', stream);
    throw new Error('crashed');
  };
  await expect(file.fill(crash)).rejects.toThrow('crashed');
  expect(await file.fill((stream) => write('video', stream))).toBe(5);
  expect(readFileSync(path, 'utf8')).toBe('video');
  expect(existsSync(`${path}.part`)).toBe(false);
});

it('leaves no file when it is discarded', async () => {
  const file = new VideoFile(join(folder, 'none.webm'), failed);
  expect(existsSync(join(folder, 'none.webm.part'))).toBe(true);
  await file.discard();
  expect(existsSync(join(folder, 'none.webm.part'))).toBe(false);
});

it.runIf(process.platform === 'linux')(
  'reports a full disk once, and leaves no file on a disk that is full from the start',
  async () => {
    const failures: Error[] = [];
    const file = new VideoFile(path, (error) => failures.push(error));
    rmSync(`${path}.part`);
    symlinkSync('/dev/full', `${path}.part`);
    for (const bytes of [1, 2]) file.reserve(bytes * 1024 * 1024);
    await expect.poll(() => failures).toMatchObject([{ code: 'ENOSPC' }]);
    file.reserve(3 * 1024 * 1024);
    expect(() => new VideoFile(path, failed)).toThrow('ENOSPC');
    expect(existsSync(`${path}.part`)).toBe(false);
    await file.discard();
    expect(failures).toHaveLength(1);
  },
);

/** Writes a text out of order, as the WebM writer does. */
async function write(text: string, stream: WritableStream<FilePart>): Promise<void> {
  const data = new Uint8Array(Buffer.from(text));
  const half = Math.floor(data.length / 2);
  const writer = stream.getWriter();
  await writer.write({ data: data.slice(half), position: half });
  await writer.write({ data: data.slice(0, half), position: 0 });
  await writer.close();
}

function failed(error: Error): void {
  throw error;
}

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
