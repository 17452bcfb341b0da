import {
  closeSync,
  copyFileSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { expect, it, onTestFinished } from 'vitest';
import { saveReplayPage, saveSingleReplayPage } from '../../../src/recorder/page/replay-file.js';
import { faults, usePerson } from '../../local/pages/support.js';
import {
  COLOURS,
  expectColour,
  facts,
  LENGTH,
  shownAt,
  useFolder,
  useMedia,
  watchRequests,
} from './support.js';

const made = useMedia();
const folder = useFolder();
const person = usePerson();

const TIMELINE = [
  { at: 1_000, kind: 'mark', text: 'cart.spec' },
  { at: 5_000, kind: 'failed', text: 'Error: no' },
] as const;

it('plays the video in one file, which was moved, and offers it as a download', async () => {
  const video = join(folder, 'video.webm');
  writeFileSync(video, made.media.video);
  const path = join(folder, 'one.html');
  await saveSingleReplayPage(path, facts(TIMELINE), { video, poster: made.media.pictures[1] });
  rmSync(video);
  const { page, requested } = await openElsewhere(path);
  // The poster.
  await expectColour(page, COLOURS[0]);
  await page.getByRole('button', { name: 'Show the failure' }).click();
  await expect.poll(() => shownAt(page)).toBe(5);
  await expectColour(page, COLOURS[2]);
  await page.getByRole('button', { name: 'Play' }).click();
  await expect.poll(() => shownAt(page)).toBeGreaterThan(5);
  const downloading = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download' }).click();
  const download = await downloading;
  expect(download.suggestedFilename()).toBe('cart.spec.webm');
  expect(readFileSync(await download.path()).equals(made.media.video)).toBe(true);
  expect(requested.filter((url) => !/^(file|data|blob):/.test(url))).toEqual([]);
  expect(requested.filter((url) => url.startsWith('file:'))).toHaveLength(1);
  expect(faults(page)).toEqual([]);
});

it('plays the pictures in one file, and refuses content from anywhere else', async () => {
  const path = join(folder, 'pictures.html');
  const { pictures } = made.media;
  const frames = pictures.map((jpeg, index) => ({ at: (index * LENGTH) / pictures.length, jpeg }));
  const embedded = { poster: pictures[0], pictures: { length: LENGTH, frames } };
  await saveSingleReplayPage(path, facts(TIMELINE, { video: undefined }), embedded);
  writeFileSync(join(folder, 'beside.jpg'), pictures[0]!);
  const { page, requested } = await openElsewhere(path);
  await page.getByLabel('Position in the video').fill('6500');
  await expectColour(page, COLOURS[3]);
  await page.getByLabel('Position in the video').fill('2500');
  await expectColour(page, COLOURS[1]);
  expect(faults(page)).toEqual([]);
  const beside = pathToFileURL(join(folder, 'beside.jpg')).href;
  await page.evaluate((url) => document.body.append(Object.assign(new Image(), { src: url })), beside);
  await expect.poll(() => faults(page).join('\n')).toMatch(/violates.*img-src data:/);
  expect(requested.filter((url) => url.startsWith('file:'))).toHaveLength(1);
});

it('also plays `data:` URLs that its facts have', async () => {
  const path = join(folder, 'urls.html');
  const { video, pictures } = made.media;
  const files = {
    video: `data:video/webm;base64,${video.toString('base64')}`,
    poster: `data:image/jpeg;base64,${pictures[0]!.toString('base64')}`,
  };
  await saveReplayPage(path, facts(TIMELINE, { files }));
  const { page } = await openElsewhere(path);
  await page.getByLabel('Position in the video').fill('6500');
  await expectColour(page, COLOURS[3]);
  expect(faults(page)).toEqual([]);
});

it('plays a video of many megabytes in one file', async () => {
  // Players ignore this element of the format: a void of 24 MB.
  const size = 24 * 1024 * 1024;
  const path = join(folder, 'large.html');
  const element = Buffer.concat([Buffer.from([0xec]), lengthOf(size), Buffer.alloc(size)]);
  await saveSingleReplayPage(path, facts([]), { video: Buffer.concat([made.media.video, element]) });
  expect(statSync(path).size).toBeGreaterThan(size);
  const { page } = await openElsewhere(path);
  await page.getByLabel('Position in the video').fill('6500');
  await expectColour(page, COLOURS[3]);
  expect(faults(page)).toEqual([]);
});

it('needs less memory to write the file than the video has bytes', async () => {
  const size = 96 * 1024 * 1024;
  const video = join(folder, 'huge.webm');
  const file = openSync(video, 'w');
  for (let written = 0; written < size; written += 1024 * 1024)
    writeSync(file, Buffer.alloc(1024 * 1024, written));
  closeSync(file);
  const memory = () => {
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const before = memory();
  const looks: number[] = [];
  const watching = setInterval(() => looks.push(memory() - before), 5);
  const path = join(folder, 'huge.html');
  await saveSingleReplayPage(path, facts([]), { video }).finally(() => clearInterval(watching));
  expect(looks.length).toBeGreaterThan(0);
  expect(Math.max(...looks)).toBeLessThan(size);
  // Four characters stand for three bytes.
  expect(statSync(path).size).toBeGreaterThan((size * 4) / 3);
});

it('leaves nothing of a page whose video cannot be read, and keeps the earlier page', async () => {
  const own = mkdtempSync(join(folder, 'failed-'));
  const path = join(own, 'index.html');
  writeFileSync(path, 'earlier');
  const saving = saveSingleReplayPage(path, facts([]), { video: join(own, 'missing.webm') });
  await expect(saving).rejects.toThrow(/ENOENT/);
  expect(readdirSync(own)).toEqual(['index.html']);
  expect(readFileSync(path, 'utf8')).toBe('earlier');
});

/** Opens a copy of the file in a folder that contains nothing else. */
async function openElsewhere(path: string): Promise<{ page: Page; requested: readonly string[] }> {
  const elsewhere = mkdtempSync(join(tmpdir(), 'elsewhere-'));
  onTestFinished(() => rmSync(elsewhere, { recursive: true }));
  const copy = join(elsewhere, 'replay.html');
  copyFileSync(path, copy);
  const page = await person.open('about:blank');
  const requested = await watchRequests(page);
  await page.goto(pathToFileURL(copy).href);
  return { page, requested };
}

/** A length of WebM in eight bytes. */
function lengthOf(size: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(size));
  bytes[0] = 0x01;
  return bytes;
}
