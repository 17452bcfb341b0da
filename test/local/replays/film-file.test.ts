import type * as fs from 'node:fs';
import type * as promises from 'node:fs/promises';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StreamTargetChunk } from 'mediabunny';
import { afterAll, beforeEach, expect, it, vi } from 'vitest';
import { FilmFile } from '../../../src/local/replays/film-file.js';

/** Bytes that the played disk still takes. */
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
const folder = mkdtempSync(join(tmpdir(), 'film-file-'));
const path = join(folder, 'film.webm');
afterAll(() => rmSync(folder, { recursive: true }));
beforeEach(() => void (disk.free = Infinity));

it('keeps a little more room than it was asked for, and gives back what the film does not need', async () => {
  const file = new FilmFile(path, failed);
  file.keepRoom(3 * MEGABYTE);
  await expect.poll(() => file.room).toBeGreaterThan(3 * MEGABYTE);
  expect(statSync(`${path}.part`).size).toBe(file.room);
  expect(await file.fill(written('film'))).toBe(4);
  expect(readFileSync(path, 'utf8')).toBe('film');
  expect(existsSync(`${path}.part`)).toBe(false);
});

it('says once that the disk is full, and writes the film into the room that there was', async () => {
  disk.free = 2 * MEGABYTE;
  const failures: Error[] = [];
  const file = new FilmFile(path, (error) => failures.push(error));
  file.keepRoom(MEGABYTE);
  await expect.poll(() => file.room).toBeGreaterThan(MEGABYTE);
  file.keepRoom(9 * MEGABYTE);
  file.keepRoom(10 * MEGABYTE);
  await expect.poll(() => failures).toMatchObject([{ code: 'ENOSPC' }]);
  file.keepRoom(11 * MEGABYTE);
  expect(await file.fill(written('x'.repeat(MEGABYTE)))).toBe(MEGABYTE);
  expect(failures).toHaveLength(1);
});

it('takes a film anew after an attempt that failed', async () => {
  const file = new FilmFile(path, failed);
  await expect(
    file.fill(async (stream) => {
      await written('a longer beginning')(stream);
      throw new Error('crashed');
    }),
  ).rejects.toThrow('crashed');
  expect(await file.fill(written('film'))).toBe(4);
  expect(readFileSync(path, 'utf8')).toBe('film');
});

it('leaves nothing when there is no film, or no room to begin with', async () => {
  const file = new FilmFile(join(folder, 'none.webm'), failed);
  await file.discard();
  disk.free = 1000;
  expect(() => new FilmFile(join(folder, 'full.webm'), failed)).toThrow('full');
  expect([existsSync(join(folder, 'none.webm.part')), existsSync(join(folder, 'full.webm.part'))]).toEqual([
    false,
    false,
  ]);
});

/** Writes a text as an encoder does: the end first. */
function written(text: string) {
  const data = new Uint8Array(Buffer.from(text));
  const half = Math.floor(data.length / 2);
  return async (stream: WritableStream<StreamTargetChunk>) => {
    const writer = stream.getWriter();
    await writer.write({ type: 'write', data: data.slice(half), position: half });
    await writer.write({ type: 'write', data: data.slice(0, half), position: 0 });
    await writer.close();
  };
}

function failed(error: Error): void {
  throw error;
}
