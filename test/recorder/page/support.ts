import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as Mediabunny from 'mediabunny';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { saveReplayPage, type SavedFacts } from '../../../src/recorder/page/replay-file.js';
import type { TimelineEntry } from '../../../src/recorder/timeline.js';
import { launchBrowser } from '../../local/replays/support.js';

/** The colours of the pictures, one for each quarter. */
export const COLOURS = ['red', 'lime', 'blue', 'yellow'] as const;

/** A video, and one picture of each colour. */
export interface Media {
  readonly video: Buffer;
  readonly pictures: readonly Buffer[];
}

/** Milliseconds of the video. */
export const LENGTH = 8_000;

/** Makes media for a test file. @param length Of the video, in milliseconds. */
export function useMedia(length = LENGTH): { readonly media: Media } {
  const made = {} as { media: Media };
  beforeAll(async () => void (made.media = await makeMedia(length)));
  return made;
}

declare const mediabunny: typeof Mediabunny;

/** Encoding needs an https page. No request for it leaves the browser. */
async function makeMedia(length: number): Promise<Media> {
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    const body = '<script type="module">globalThis.mediabunny = await import("/mediabunny.mjs")</script>';
    await page.route('https://media.invalid/', (route) => route.fulfill({ contentType: 'text/html', body }));
    const path = 'node_modules/mediabunny/dist/bundles/mediabunny.min.mjs';
    await page.route('**/mediabunny.mjs', (route) => route.fulfill({ path }));
    await page.goto('https://media.invalid/');
    await page.waitForFunction('globalThis.mediabunny !== undefined');
    const [video, ...pictures] = await page.evaluate(encode, { colours: COLOURS, length });
    return {
      video: Buffer.from(video!, 'base64'),
      pictures: pictures.map((one) => Buffer.from(one, 'base64')),
    };
  } finally {
    await browser.close();
  }
}

async function encode({ colours, length }: { colours: readonly string[]; length: number }) {
  const canvas = new OffscreenCanvas(320, 240);
  const context = canvas.getContext('2d')!;
  const { BufferTarget, CanvasSource, Output, QUALITY_LOW, WebMOutputFormat } = mediabunny;
  const target = new BufferTarget();
  const output = new Output({ format: new WebMOutputFormat(), target });
  const source = new CanvasSource(canvas, { codec: 'vp8', quality: QUALITY_LOW, keyFrameInterval: 1 });
  output.addVideoTrack(source);
  await output.start();
  const pictures: Blob[] = [];
  const frames = 40;
  for (let frame = 0; frame < frames; frame++) {
    context.fillStyle = colours[Math.floor((frame * colours.length) / frames)]!;
    context.fillRect(0, 0, 320, 240);
    await source.add((frame * length) / frames / 1000, length / frames / 1000);
    if (frame % (frames / colours.length) === 0)
      pictures.push(await canvas.convertToBlob({ type: 'image/jpeg' }));
  }
  await output.finalize();
  const blobs = [new Blob([target.buffer!]), ...pictures];
  return await Promise.all(
    blobs.map(
      (blob) =>
        new Promise<string>((resolve) => {
          const reader = new FileReader();
          reader.onload = () => resolve((reader.result as string).split(',')[1]!);
          reader.readAsDataURL(blob);
        }),
    ),
  );
}

/** A folder until the end of the test file. */
export function useFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'replay-page-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** The facts of a recording whose video lasts `LENGTH`. */
export function facts(timeline: readonly TimelineEntry[], more: Partial<SavedFacts> = {}): SavedFacts {
  return {
    state: 'ready',
    replayId: '0123456789abcdef0123456789abcdef',
    sessionId: 'f3c1455d0a6b4d0f9c1455d0a6b4d0f9',
    pool: 'scrapers',
    service: 'kernel',
    leaseName: undefined,
    tags: undefined,
    startedAt: '2026-02-03T04:05:06.789Z',
    finishedAt: '2026-02-03T04:05:14.789Z',
    failure: undefined,
    timeline,
    video: { type: 'video/webm', size: 1_000, duration: LENGTH, width: 320, height: 240 },
    files: { video: 'video.webm', poster: 'poster.jpg' },
    ...more,
  };
}

/** Writes a page with its files. @returns The URL of the page. */
export async function savePage(
  folder: string,
  facts: SavedFacts,
  { video, pictures }: Media,
): Promise<string> {
  const own = mkdtempSync(join(folder, 'replay-'));
  writeFileSync(join(own, 'video.webm'), video);
  writeFileSync(join(own, 'poster.jpg'), pictures[0]!);
  pictures.forEach((picture, index) => writeFileSync(join(own, `${index}.jpg`), picture));
  await saveReplayPage(join(own, 'index.html'), facts);
  return pathToFileURL(join(own, 'index.html')).href;
}

/** The facts that a page shows pictures in place of a video. */
export const PICTURES: Pick<SavedFacts, 'video' | 'pictures'> = {
  video: undefined,
  pictures: {
    length: LENGTH,
    frames: COLOURS.map((_, index) => ({ at: (index * LENGTH) / COLOURS.length, source: `${index}.jpg` })),
  },
};

/** The position that the page shows, in seconds. */
export async function shownAt(page: Page): Promise<number> {
  const [minutes, seconds] = (await page.locator('#time').textContent())!.split(' / ')[0]!.split(':');
  return 60 * Number(minutes) + Number(seconds);
}

/** The colour in the middle of what the player shows. */
export async function colourShown(page: Page): Promise<string> {
  const box = (await page.locator('#screen').boundingBox())!;
  const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2, width: 4, height: 4 };
  const png = await page.screenshot({ clip: middle });
  const probe = await page.context().newPage();
  try {
    const [red, green, blue] = await probe.evaluate(async (base64) => {
      const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
      const image = await createImageBitmap(new Blob([bytes]));
      const context = new OffscreenCanvas(4, 4).getContext('2d')!;
      context.drawImage(image, 0, 0);
      return [...context.getImageData(1, 1, 1, 1).data];
    }, png.toString('base64'));
    const is = (value: number | undefined) => value! > 128;
    const names: Record<string, string> = { '100': 'red', '010': 'lime', '001': 'blue', '110': 'yellow' };
    return names[[red, green, blue].map((one) => Number(is(one))).join('')] ?? `${red},${green},${blue}`;
  } finally {
    await probe.close();
  }
}

/** Waits until the player shows a colour. */
export async function expectColour(page: Page, colour: string): Promise<void> {
  await expect.poll(() => colourShown(page)).toBe(colour);
}

/** The addresses that a page requested, without the content of `data:` URLs. */
export async function watchRequests(page: Page): Promise<string[]> {
  const requested: string[] = [];
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Network.enable');
  cdp.on('Network.requestWillBeSent', ({ request }) => requested.push(request.url.slice(0, 300)));
  return requested;
}
