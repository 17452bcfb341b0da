import { mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, expect, it } from 'vitest';
import {
  FrameFile,
  FrameSampler,
  layOutFrames,
  readFrames,
  type Frame,
  type TimedFrame,
} from '../../../src/local/replays/frames.js';

const folder = mkdtempSync(join(tmpdir(), 'frames-'));
afterAll(() => rmSync(folder, { recursive: true }));

const FRAMES: Frame[] = ['one', 'two', 'three'].map((text, index) => ({
  at: index * 100.5,
  jpeg: Buffer.from(text),
}));

it('reads back the frames that were written', async () => {
  const path = join(folder, 'whole');
  const file = new FrameFile(path, failed);
  for (const frame of FRAMES) file.append(frame);
  await file.end();
  expect(await framesOf(path)).toEqual(FRAMES);
});

it.each([1, 5, 16])('skips a last frame that lacks %i bytes', async (missing) => {
  const path = join(folder, `cut-${missing}`);
  const file = new FrameFile(path, failed);
  for (const frame of FRAMES) file.append(frame);
  await file.end();
  truncateSync(path, file.bytes - missing);
  expect(await framesOf(path)).toEqual(FRAMES.slice(0, 2));
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

function failed(error: Error): void {
  throw error;
}

async function framesOf(path: string): Promise<Frame[]> {
  return (await Readable.from(readFrames(path)).toArray()) as Frame[];
}

it('shows the first frame from the start of the video, and the last frame until its end', async () => {
  expect(await layOut([300, 1_000], 2_500)).toEqual([
    { at: 0, duration: 1_000, shows: 300, isKey: true },
    { at: 1_000, duration: 1_500, shows: 1_000, isKey: false },
  ]);
});

it('repeats a frame every 10 s, so that players can seek in a video of a still page', async () => {
  const frames = await layOut([0], 22_000);
  expect(frames.map(({ at, duration, isKey }) => [at, duration, isKey])).toEqual([
    [0, 10_000, true],
    [10_000, 10_000, false],
    [20_000, 2_000, false],
  ]);
});

it('has a key frame every 5 s while the page changes, and every 5 min while it does not', async () => {
  const moving = await layOut(
    Array.from({ length: 120 }, (_, index) => index * 100),
    12_000,
  );
  const still = await layOut([0], 900_000);
  const keys = [moving, still].map((frames) => frames.filter(({ isKey }) => isKey).map(({ at }) => at));
  expect(keys).toEqual([
    [0, 5_000, 10_000],
    [0, 300_000, 600_000],
  ]);
});

it('lays out no frames for a recording without frames', async () => {
  expect(await layOut([], 1_000)).toEqual([]);
});

it('passes on the last frame of each interval', () => {
  const passed: number[] = [];
  const sampler = new FrameSampler(100, ({ at }) => passed.push(at));
  for (let at = 0; at < 1_000; at += 17) sampler.add(frame(at));
  sampler.flush();
  expect(passed).toHaveLength(10);
  expect(passed[0]).toBe(85);
  expect(passed.at(-1)).toBe(986);
});

function frame(at: number): Frame {
  return { at, jpeg: Buffer.from(String(at)) };
}

async function layOut(times: number[], length: number) {
  const frames = (async function* () {
    for (const at of times) yield frame(at);
  })();
  const laid = (await Readable.from(layOutFrames(frames, length)).toArray()) as TimedFrame[];
  return laid.map(({ jpeg, ...rest }) => ({ ...rest, shows: Number(jpeg) }));
}
