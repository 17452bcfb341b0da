import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, expect, it } from 'vitest';
import { findBrowser } from '../../../src/local.js';
import { launchChromium, type Chromium } from '../../../src/local/browser/chromium.js';
import { FilmFile } from '../../../src/local/replays/film-file.js';
import { FilmStudio } from '../../../src/local/replays/film-studio.js';
import type { Frame } from '../../../src/local/replays/frame.js';
import { Spool } from '../../../src/local/replays/spool.js';
import type { FilmOrder } from '../../../src/local/replays/write-film.js';
import { Cinema, hue } from './support.js';

const folder = mkdtempSync(join(tmpdir(), 'studio-'));
const cinema = new Cinema();
const started: Chromium[] = [];
let studio = new FilmStudio(launch);
afterEach(async () => {
  await studio.close();
  studio = new FilmStudio(launch);
  started.length = 0;
});
afterAll(async () => {
  await cinema.close();
  rmSync(folder, { recursive: true });
});

const HOUR = 3_600_000;

it('makes a film of an hour without holding it in memory', { timeout: 600_000 }, async () => {
  const pictures = await Promise.all(['red', 'lime', 'blue'].map((colour) => cinema.picture(colour)));
  // Decoders stop at the end of the picture: what follows makes it as large as that of a full page.
  const padding = Buffer.alloc(512 * 1024);
  const frames = Array.from({ length: 120 }, (_, index) => ({
    at: index * 30_000,
    jpeg: Buffer.concat([pictures[Math.floor(index / 40)]!, padding]),
  }));
  const spool = await fill('hour', frames);
  frames.length = 0;
  const before = memory();
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, memory() - before)), 20);
  const film = await studio.make(order(spool, HOUR)).finally(() => clearInterval(watch));
  expect(most).toBeLessThan(spool.bytes);
  const times = [0.1, 0.32, 0.35, 0.65, 0.68, 0.99];
  const { duration, width, height, colours } = await cinema.show(readFileSync(film!.path), times);
  expect(duration).toBeCloseTo(3_600, 0);
  expect([width, height]).toEqual([320, 240]);
  expect(colours.map(hue)).toEqual(['red', 'red', 'green', 'green', 'blue', 'blue']);
});

it('gives a Chromium that crashes a second try', { timeout: 120_000 }, async () => {
  const jpeg = await cinema.picture('red');
  const spool = await fill(
    'crash',
    Array.from({ length: 200 }, (_, index) => ({ at: index * 100, jpeg })),
  );
  const making = studio.make(order(spool, 20_000));
  await expect.poll(() => started.length, { timeout: 30_000 }).toBe(1);
  process.kill(started[0]!.pid, 'SIGKILL');
  expect((await making)?.duration).toBe(20_000);
  expect(started).toHaveLength(2);
});

it('fails with the reason when it crashes again, and leaves no file', { timeout: 120_000 }, async () => {
  const spool = await fill('broken', [{ at: 0, jpeg: Buffer.from('no picture') }]);
  const broken = order(spool, 1_000);
  await expect(studio.make(broken)).rejects.toThrow(/decoded/);
  const good = order(await fill('good', [{ at: 0, jpeg: await cinema.picture('red') }]), 1_000);
  expect(await studio.make(good)).toMatchObject({ duration: 1_000, type: 'video/webm' });
  expect(existsSync(broken.file.path)).toBe(false);
  await broken.file.discard();
});

it('makes no film of nothing', { timeout: 60_000 }, async () => {
  const empty = order(await fill('empty', []), 1_000);
  expect(await studio.make(empty)).toBeUndefined();
  expect(existsSync(empty.file.path)).toBe(false);
  await empty.file.discard();
});

async function launch(signal: AbortSignal): Promise<Chromium> {
  const chromium = await launchChromium(
    { executablePath: await findBrowser(), args: [], headless: true },
    signal,
  );
  started.push(chromium);
  return chromium;
}

/** A spool drops frames while the disk is behind: those are given to it again. */
async function fill(name: string, frames: readonly Frame[]): Promise<Spool> {
  const spool = new Spool(join(folder, name), failed);
  for (const frame of frames) {
    const before = spool.bytes;
    for (spool.append(frame); spool.bytes === before; spool.append(frame)) await sleep(5);
  }
  await spool.end();
  return spool;
}

function order({ path }: Spool, length: number): FilmOrder {
  return { frames: path, file: new FilmFile(`${path}.webm`, failed), length, framesPerSecond: 10 };
}

function failed(error: Error): void {
  throw error;
}

function memory(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
