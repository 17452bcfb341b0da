import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { VideoFile, type FilePart } from '../../src/recorder/video-file.js';

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
