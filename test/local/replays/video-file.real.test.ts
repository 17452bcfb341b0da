import type * as fs from 'node:fs';
import type * as promises from 'node:fs/promises';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeEach, expect, it, vi } from 'vitest';
import { HttpFault } from '../../../src/local/http/answer.js';
import { videoAnswer, VideoFile, type FilePart, type Video } from '../../../src/local/replays/video-file.js';

/** Free bytes of the simulated disk. */
const disk = vi.hoisted(() => ({ free: Infinity }));

vi.mock('node:fs', async (original) => {
  const real = await original<typeof fs>();
  const writeFileSync = (path: string, data: Buffer) => {
    real.writeFileSync(path, data.subarray(0, disk.free));
    take(data.length);
  };
  return { ...real, writeFileSync };
});

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof promises>();
  const appendFile = async (path: string, data: Buffer) => {
    await real.appendFile(path, data.subarray(0, disk.free));
    take(data.length);
  };
  return { ...real, appendFile };
});

function take(bytes: number): void {
  disk.free -= bytes;
  if (disk.free < 0) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
}

const MEGABYTE = 1024 * 1024;
const folder = mkdtempSync(join(tmpdir(), 'video-file-'));
const path = join(folder, 'video.webm');
afterAll(() => rmSync(folder, { recursive: true }));
beforeEach(() => void (disk.free = Infinity));

it('reserves more space than requested, and releases what the video does not need', async () => {
  const file = new VideoFile(path, failed);
  file.reserve(3 * MEGABYTE);
  await expect.poll(() => file.reserved).toBeGreaterThan(3 * MEGABYTE);
  expect(statSync(`${path}.part`).size).toBe(file.reserved);
  expect(await file.fill(written('video'))).toBe(5);
  expect(readFileSync(path, 'utf8')).toBe('video');
  expect(existsSync(`${path}.part`)).toBe(false);
});

it('reports a full disk once, and writes the video into the reserved space', async () => {
  disk.free = 2 * MEGABYTE;
  const failures: Error[] = [];
  const file = new VideoFile(path, (error) => failures.push(error));
  file.reserve(MEGABYTE);
  await expect.poll(() => file.reserved).toBeGreaterThan(MEGABYTE);
  file.reserve(9 * MEGABYTE);
  file.reserve(10 * MEGABYTE);
  await expect.poll(() => failures).toMatchObject([{ code: 'ENOSPC' }]);
  file.reserve(11 * MEGABYTE);
  expect(await file.fill(written('x'.repeat(MEGABYTE)))).toBe(MEGABYTE);
  expect(failures).toHaveLength(1);
});

it('can be written again after a failed attempt', async () => {
  const file = new VideoFile(path, failed);
  await expect(
    file.fill(async (stream) => {
      await written('a longer beginning')(stream);
      throw new Error('crashed');
    }),
  ).rejects.toThrow('crashed');
  expect(await file.fill(written('video'))).toBe(5);
  expect(readFileSync(path, 'utf8')).toBe('video');
});

it('leaves no file when it is discarded, or when the disk has no space at the start', async () => {
  const file = new VideoFile(join(folder, 'none.webm'), failed);
  await file.discard();
  disk.free = 1000;
  expect(() => new VideoFile(join(folder, 'full.webm'), failed)).toThrow('full');
  expect([existsSync(join(folder, 'none.webm.part')), existsSync(join(folder, 'full.webm.part'))]).toEqual([
    false,
    false,
  ]);
});

/** Writes a text out of order, as the WebM writer does. */
function written(text: string) {
  const data = new Uint8Array(Buffer.from(text));
  const half = Math.floor(data.length / 2);
  return async (stream: WritableStream<FilePart>) => {
    const writer = stream.getWriter();
    await writer.write({ data: data.slice(half), position: half });
    await writer.write({ data: data.slice(0, half), position: 0 });
    await writer.close();
  };
}

function failed(error: Error): void {
  throw error;
}

const served = join(folder, 'served.webm');
writeFileSync(served, Buffer.from('0123456789'));
const video: Video = { path: served, type: 'video/webm', size: 10, duration: 1000, width: 2, height: 2 };

it.each([
  ['the whole video without a range', undefined, '0123456789'],
  ['the whole video instead of several ranges', 'bytes=0-1,3-4', '0123456789'],
  ['the whole video for an unknown unit', 'seconds=1-2', '0123456789'],
])('answers %s', async (_what, range, bytes) => {
  const { status, content, headers } = videoAnswer(video, { headers: { range } });
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
])('answers %s with that range', async (range, bytes, sent) => {
  const { status, content, headers } = videoAnswer(video, { headers: { range } });
  expect(status).toBe(206);
  expect(headers).toEqual({ 'accept-ranges': 'bytes', 'content-range': `bytes ${sent}/10` });
  expect(content?.size).toBe(bytes.length);
  expect(await text(content?.data as Readable)).toBe(bytes);
});

it.each(['bytes=10-', 'bytes=99-100', 'bytes=4-2', 'bytes=-0'])(
  'refuses %s with the size of the video',
  (range) => {
    const fault = catchFault(() => videoAnswer(video, { headers: { range } }));
    expect(fault).toMatchObject({ status: 416, extras: { headers: { 'content-range': 'bytes */10' } } });
  },
);

function catchFault(call: () => unknown): HttpFault {
  try {
    call();
  } catch (error) {
    if (error instanceof HttpFault) return error;
  }
  throw new Error('The call did not throw an HttpFault.');
}
