import { mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, expect, it } from 'vitest';
import { FrameFile, layOutFrames, readFrames } from '../../src/recorder/frames.js';
import type { Frame, TimedFrame } from '../../src/recorder/frames.js';

const folder = mkdtempSync(join(tmpdir(), 'frames-'));
afterAll(() => rmSync(folder, { recursive: true }));

const FRAMES = [0, 100.5, 201].map(frame);

it.each([
  [0, FRAMES],
  [1, FRAMES.slice(0, 2)],
  [3, FRAMES.slice(0, 2)],
  [14, FRAMES.slice(0, 2)],
])('reads back the frames of a file that lacks %i bytes of its last frame', async (missing, frames) => {
  const path = join(folder, `cut-${missing}`);
  const file = new FrameFile(path, failed);
  for (const frame of FRAMES) file.append(frame);
  await file.end();
  truncateSync(path, file.bytes - missing);
  expect(await framesOf(path)).toEqual(frames);
});

it.runIf(process.platform === 'linux')('reports a full disk once, and ignores further frames', async () => {
  const failures: Error[] = [];
  const file = new FrameFile('/dev/full', (error) => failures.push(error));
  for (const frame of FRAMES) file.append(frame);
  await expect.poll(() => failures).toMatchObject([{ code: 'ENOSPC' }]);
  for (const frame of FRAMES) file.append(frame);
  await file.end();
  expect(failures).toHaveLength(1);
});

it('drops frames when the disk is slow, so that memory use stays limited', async () => {
  const path = join(folder, 'slow');
  const file = new FrameFile(path, failed);
  const jpeg = Buffer.alloc(1024 * 1024);
  for (let at = 0; at < 100; at++) file.append({ at, jpeg });
  expect(file.bytes).toBeLessThan(20 * 1024 * 1024);
  await file.end();
  expect((await framesOf(path)).length).toBeGreaterThan(10);
});

it('shows the first frame from the start of the video, and the last frame until its end', async () => {
  expect(await layOut([300, 1_000], 2_500)).toEqual([
    { at: 0, duration: 1_000, jpeg: frame(300).jpeg, isKey: true },
    { at: 1_000, duration: 1_500, jpeg: frame(1_000).jpeg, isKey: false },
  ]);
  expect(await layOut([], 1_000)).toEqual([]);
});

it('repeats a frame every 10 s, so that players can seek in a video of a still page', async () => {
  const frames = await layOut([0], 22_000);
  expect(frames.map(({ at, duration }) => [at, duration])).toEqual([
    [0, 10_000],
    [10_000, 10_000],
    [20_000, 2_000],
  ]);
});

it.each([
  ['5 s while the page changes', Array.from({ length: 120 }, (_, index) => index * 100), 12_000, 5_000],
  ['5 min while it does not', [0], 900_000, 300_000],
])('has a key frame every %s', async (_period, times, length, interval) => {
  const keys = (await layOut(times, length)).filter(({ isKey }) => isKey);
  expect(keys.map(({ at }) => at)).toEqual([0, interval, 2 * interval]);
});

function frame(at: number): Frame {
  return { at, jpeg: Buffer.from(String(at)) };
}

function failed(error: Error): void {
  throw error;
}

function framesOf(path: string): Promise<Frame[]> {
  return Readable.from(readFrames(path)).toArray() as Promise<Frame[]>;
}

function layOut(times: readonly number[], length: number): Promise<TimedFrame[]> {
  const frames = layOutFrames(Readable.from(times.map(frame)), length);
  return Readable.from(frames).toArray() as Promise<TimedFrame[]>;
}
