import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { findBrowser } from '../../src/local.js';
import { launchChromium, type Chromium } from '../../src/local/browser/chromium.js';
import { FrameFile, type Frame } from '../../src/recorder/frames.js';
import { VideoFile } from '../../src/recorder/video-file.js';
import { VideoWriter, type VideoSource } from '../../src/recorder/video-writer.js';
import { VideoPlayer, hue } from '../local/replays/support.js';

const folder = mkdtempSync(join(tmpdir(), 'video-writer-'));
const player = new VideoPlayer();
const started: Chromium[] = [];
afterAll(async () => {
  await player.close();
  rmSync(folder, { recursive: true });
});

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const HOUR = 3_600_000;

it('writes a video of an hour without holding it in memory', { timeout: 1_800_000 }, async () => {
  const pictures = await Promise.all(['red', 'lime', 'blue'].map((colour) => player.picture(colour)));
  // Decoders ignore bytes after the picture. The padding makes it as large as a full page.
  const padding = Buffer.alloc(256 * 1024);
  const frames = Array.from({ length: 360 }, (_, index) => ({
    at: index * 10_000,
    jpeg: Buffer.concat([pictures[Math.floor(index / 120)]!, padding]),
  }));
  const source = await fill('hour', HOUR, frames);
  frames.length = 0;
  const before = memory();
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, memory() - before)), 250);
  const video = await newWriter()
    .write(source)
    .finally(() => clearInterval(watch));
  expect(most).toBeLessThan((360 * padding.length) / 2);
  const times = [0.1, 0.32, 0.35, 0.65, 0.68, 0.99];
  const { duration, width, height, colours } = await player.play(readFileSync(video!.path), times);
  expect(duration).toBeCloseTo(3_600, 0);
  expect([width, height]).toEqual([320, 240]);
  expect(colours.map(hue)).toEqual(['red', 'red', 'green', 'green', 'blue', 'blue']);
});

it('writes the video with a new Chromium after a crash', async () => {
  const jpeg = await player.picture('red');
  const frames = Array.from({ length: 200 }, (_, index) => ({ at: index * 100, jpeg }));
  const source = await fill('crash', 20_000, frames);
  started.length = 0;
  const writing = newWriter().write(source);
  await expect.poll(() => started.length).toBe(1);
  process.kill(started[0]!.pid, 'SIGKILL');
  expect((await writing)?.duration).toBe(20_000);
  expect(started).toHaveLength(2);
});

it('fails with the reason after a second failure, leaves no file, and writes the next video', async () => {
  const writer = newWriter();
  const broken = await fill('broken', 1_000, [{ at: 0, jpeg: Buffer.from('no picture') }]);
  await expect(writer.write(broken)).rejects.toThrow(/decoded/);
  expect(existsSync(broken.file.path)).toBe(false);
  await broken.file.discard();
  const good = await fill('good', 1_000, [{ at: 0, jpeg: await player.picture('red') }]);
  expect(await writer.write(good)).toMatchObject({ duration: 1_000, type: 'video/webm' });
  const empty = await fill('empty', 1_000, []);
  expect(await writer.write(empty)).toBeUndefined();
  expect(existsSync(empty.file.path)).toBe(false);
  await empty.file.discard();
});

function newWriter(): VideoWriter {
  const writer = new VideoWriter(async (signal) => {
    const options = { executablePath: await findBrowser(), args: [], headless: true };
    const chromium = await launchChromium(options, signal);
    started.push(chromium);
    return chromium;
  });
  onTestFinished(() => writer.close());
  return writer;
}

/** Appends frames again that were dropped because the disk was slow. */
async function fill(name: string, length: number, frames: readonly Frame[]): Promise<VideoSource> {
  const file = new FrameFile(join(folder, name), failed);
  for (const frame of frames) {
    const before = file.bytes;
    for (file.append(frame); file.bytes === before; file.append(frame)) await sleep(5);
  }
  await file.end();
  return {
    frames: file.path,
    file: new VideoFile(`${file.path}.webm`, failed),
    length,
    framesPerSecond: 10,
  };
}

function failed(error: Error): void {
  throw error;
}

/** Bytes that are in use: a busy machine collects garbage late. */
function memory(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
