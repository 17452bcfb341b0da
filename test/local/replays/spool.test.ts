import { mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, expect, it } from 'vitest';
import type { Frame } from '../../../src/local/replays/frame.js';
import { readFrames, Spool } from '../../../src/local/replays/spool.js';

const folder = mkdtempSync(join(tmpdir(), 'spool-'));
afterAll(() => rmSync(folder, { recursive: true }));

const FRAMES: Frame[] = ['one', 'two', 'three'].map((text, index) => ({
  at: index * 100.5,
  jpeg: Buffer.from(text),
}));

it('gives back what it was given', async () => {
  const path = join(folder, 'whole');
  const spool = new Spool(path, failed);
  for (const frame of FRAMES) spool.append(frame);
  await spool.end();
  expect(await framesOf(path)).toEqual(FRAMES);
});

it.each([1, 5, 16])('leaves out a last frame that lacks %i bytes', async (missing) => {
  const path = join(folder, `cut-${missing}`);
  const spool = new Spool(path, failed);
  for (const frame of FRAMES) spool.append(frame);
  await spool.end();
  truncateSync(path, spool.bytes - missing);
  expect(await framesOf(path)).toEqual(FRAMES.slice(0, 2));
});

it.runIf(process.platform === 'linux')(
  'says once when the disk is full, and goes on to take frames',
  async () => {
    const failures: Error[] = [];
    const spool = new Spool('/dev/full', (error) => failures.push(error));
    for (const frame of FRAMES) spool.append(frame);
    await expect.poll(() => failures).toMatchObject([{ code: 'ENOSPC' }]);
    for (const frame of FRAMES) spool.append(frame);
    await spool.end();
    expect(failures).toHaveLength(1);
  },
);

it('drops frames rather than grow when the disk is slow', async () => {
  const path = join(folder, 'slow');
  const spool = new Spool(path, failed);
  const jpeg = Buffer.alloc(1024 * 1024);
  for (let at = 0; at < 100; at++) spool.append({ at, jpeg });
  expect(spool.bytes).toBeLessThan(20 * 1024 * 1024);
  await spool.end();
  expect((await framesOf(path)).length).toBeGreaterThan(10);
});

function failed(error: Error): void {
  throw error;
}

async function framesOf(path: string): Promise<Frame[]> {
  return (await Readable.from(readFrames(path)).toArray()) as Frame[];
}
