import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type * as Mediabunny from 'mediabunny';
import { chromium, type Browser, type Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { findBrowser } from '../../../src/local.js';
import { readFrames, type Frame } from '../../../src/recorder/frames.js';
import type { TimelineEntry } from '../../../src/recorder/timeline.js';
import type { BrowserSession, Replay } from '../../../src/index.js';
import { until, type Api, type Reply } from '../support.js';

/** A client of the recordings API of a local pool, over HTTP. */
export class Replays {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  ask(session: BrowserSession, body: unknown = {}): Promise<Reply> {
    return this.#api.call('POST', `/browsers/${session.session_id}/replays`, { body });
  }

  /** Starts a recording; returns its id. */
  async start(session: BrowserSession, body: unknown = {}): Promise<string> {
    const reply = await firstFrame(() => this.ask(session, body));
    expect(reply.status, JSON.stringify(reply.body)).toBe(201);
    return (reply.body as Replay).replay_id!;
  }

  async stop(session: BrowserSession, id: string): Promise<number> {
    return (await this.#api.call('POST', `/browsers/${session.session_id}/replays/${id}/stop`)).status;
  }

  async list(session: BrowserSession): Promise<Replay[]> {
    const { body } = await this.#api.call('GET', `/browsers/${session.session_id}/replays`);
    return body as unknown as Replay[];
  }

  async ids(session: BrowserSession): Promise<string[]> {
    return (await this.list(session)).map(({ replay_id }) => replay_id!);
  }

  async find(session: BrowserSession, id: string): Promise<Replay> {
    return (await this.list(session)).find(({ replay_id }) => replay_id === id)!;
  }

  get(session: BrowserSession, id: string, headers: Record<string, string> = {}): Promise<Response> {
    const { baseUrl, token } = this.#api.pool;
    const url = `${baseUrl}/browsers/${session.session_id}/replays/${id}`;
    return fetch(url, { headers: { authorization: `Bearer ${token}`, ...headers } });
  }

  /** What the page of a recording shows. */
  async facts(session: BrowserSession, id: string): Promise<{ state: string; timeline: TimelineEntry[] }> {
    const { replay_view_url } = await this.find(session, id);
    if (replay_view_url!.startsWith('file:')) return savedFacts(fileURLToPath(replay_view_url!));
    const response = await fetch(replay_view_url!.replace('/replay?', '/replay/facts?'));
    return (await response.json()) as { state: string; timeline: TimelineEntry[] };
  }

  /** Waits until the video is written, if there is one. */
  async written(session: BrowserSession, id: string): Promise<Replay> {
    const isWritten = async () => {
      const { status, body } = await this.get(session, id, { range: 'bytes=0-0' });
      // An unread body would hold the connection.
      await body?.cancel();
      return status !== 202;
    };
    await until('the video is written', isWritten, VIDEO_TIMEOUT);
    return await this.find(session, id);
  }

  /** Waits for the video, and downloads it. */
  async video(session: BrowserSession, id: string): Promise<Buffer> {
    await this.written(session, id);
    const response = await this.get(session, id);
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    expect(response.headers.get('content-type')).toBe('video/webm');
    return Buffer.from(await response.arrayBuffer());
  }

  /** Records a browser while the function runs, and waits until the video is written. */
  async record(session: BrowserSession, fn: (id: string) => unknown = () => {}): Promise<Replay> {
    const id = await this.start(session);
    await fn(id);
    expect(await this.stop(session, id)).toBe(204);
    return await this.written(session, id);
  }
}

/** The facts in the page of a recording in the file system. */
export function savedFacts(path: string): { state: string; timeline: TimelineEntry[]; leaseName?: string } {
  const [, json] = /<script type="application\/json" id="recording">(.*)<\/script>/.exec(
    readFileSync(path, 'utf8'),
  )!;
  return JSON.parse(json!) as { state: string; timeline: TimelineEntry[] };
}

/** Leases a browser until the test ends. */
export async function borrow(api: Api, pool?: string): Promise<BrowserSession> {
  const session = await api.lease({}, pool);
  onTestFinished(async () => void (await api.release(session)));
  return session;
}

/** Milliseconds in which even a busy machine writes a video. */
export const VIDEO_TIMEOUT = 150_000;

/**
 * Starts a recording. The service waits 5 s for the first frame, without which there is no video: a busy machine may need
 * more time.
 */
export async function firstFrame<Value>(start: () => Promise<Value>): Promise<Value> {
  const asked = performance.now();
  const value = await start();
  if (performance.now() - asked > 4_900) await sleep(15_000);
  return value;
}

/** The frames that a recording has written so far. The latest one is not among them. */
export async function recordedFrames(replayId: string): Promise<Frame[]> {
  const paths = readdirSync(tmpdir()).map((name) => join(tmpdir(), name, `${replayId}.frames`));
  const frames: Frame[] = [];
  for await (const frame of readFrames(paths.find((path) => existsSync(path))!)) frames.push(frame);
  return frames;
}

/** What a browser shows when it plays a video. */
export interface Playback {
  /** In seconds. */
  duration: number;
  width: number;
  height: number;
  /** Mean colour of the picture at each requested time. */
  colours: Colour[];
}

export type Colour = [red: number, green: number, blue: number];

/** Plays videos in a browser of its own. */
export class VideoPlayer {
  #browser: Promise<Browser> | undefined;
  #player: Promise<Page> | undefined;

  /** @param times Positions from 0, the start, to 1, the end. */
  async play(video: Buffer, times: readonly number[]): Promise<Playback> {
    return await (await this.#page()).evaluate(watch, { base64: video.toString('base64'), times });
  }

  /** Makes a JPEG picture of one colour. */
  async picture(colour: string): Promise<Buffer> {
    const browser = await this.#open();
    const page = await browser.newPage({ viewport: { width: 320, height: 240 } });
    await page.setContent(`<body style="background:${colour}">`);
    return await page.screenshot({ type: 'jpeg' }).finally(() => page.close());
  }

  /** The mean colours of JPEG pictures. */
  async colours(pictures: readonly Buffer[]): Promise<Colour[]> {
    const encoded = pictures.map((picture) => picture.toString('base64'));
    return await (await this.#page()).evaluate(lookAt, encoded);
  }

  async close(): Promise<void> {
    await (await this.#browser)?.close();
  }

  #open(): Promise<Browser> {
    return (this.#browser ??= launchBrowser());
  }

  #page(): Promise<Page> {
    return (this.#player ??= this.#open().then(openPlayer));
  }
}

/** Starts a browser that is not part of a pool. */
export async function launchBrowser(): Promise<Browser> {
  return await chromium.launch({ executablePath: await findBrowser(), args: ['--no-sandbox'] });
}

/** Decoding needs an https page. No request for it leaves the browser. */
const PLAYER = 'https://player.invalid/';

const DECODER = 'node_modules/mediabunny/dist/bundles/mediabunny.min.mjs';

const PLAYER_PAGE = `<script type="module">
  import * as mediabunny from '/mediabunny.mjs';
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  globalThis.mediabunny = mediabunny;
  globalThis.meanColour = (picture) => {
    canvas.drawImage(picture, 0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data.subarray(0, 3)];
  };
</script>`;

declare const mediabunny: typeof Mediabunny;
declare const meanColour: (picture: CanvasImageSource) => Colour;

async function openPlayer(browser: Browser): Promise<Page> {
  const page = await browser.newPage();
  await page.route(PLAYER, (route) => route.fulfill({ contentType: 'text/html', body: PLAYER_PAGE }));
  await page.route('**/mediabunny.mjs', (route) => route.fulfill({ path: DECODER }));
  await page.goto(PLAYER);
  return page;
}

async function watch({ base64, times }: { base64: string; times: readonly number[] }): Promise<Playback> {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const video = document.createElement('video');
  video.src = URL.createObjectURL(new Blob([bytes], { type: 'video/webm' }));
  await new Promise((resolve, reject) => {
    video.onloadeddata = resolve;
    video.onerror = () => reject(new Error(video.error?.message));
  });
  const { duration, videoWidth: width, videoHeight: height } = video;
  // A paused video may show the picture before the one of its position.
  const { BufferSource, CanvasSink, Input, WEBM } = mediabunny;
  const track = await new Input({ formats: [WEBM], source: new BufferSource(bytes) }).getPrimaryVideoTrack();
  const pictures = new CanvasSink(track!);
  const colours: Colour[] = [];
  for (const time of times) colours.push(meanColour((await pictures.getCanvas(time * duration))!.canvas));
  return { duration, width, height, colours };
}

function lookAt(pictures: readonly string[]): Promise<Colour[]> {
  const colourOf = async (base64: string) => {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return meanColour(await createImageBitmap(new Blob([bytes])));
  };
  return Promise.all(pictures.map(colourOf));
}

/** The primary colour nearest to a colour, or grey. */
export function hue([red, green, blue]: Colour): 'red' | 'green' | 'blue' | 'grey' {
  const most = Math.max(red, green, blue);
  if (most - Math.min(red, green, blue) < 40) return 'grey';
  if (most === red) return 'red';
  return most === green ? 'green' : 'blue';
}

/** A page of one colour with a text that changes ten times a second, which costs less than in each frame. */
export function coloured(colour: string): string {
  return page(`<body style="background:${colour}"><p id="clock"></p><script>
    setInterval(() => (clock.textContent = performance.now()), 100);
  </script>`);
}

/** Waits, evaluated in a page, until the page is painted: after loading it may still be white. */
export const PAINTED =
  'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))';

/** A page whose colour repeats after 15 seconds: all pictures of a shorter video differ. */
export const RAINBOW = page(`<body><script>
  setInterval(() => {
    document.body.style.background = 'hsl(' + (performance.now() / 41.7) % 360 + ' 100% 50%)';
  }, 100);
</script>`);

/** A page of noise, which needs more bytes than other pages. */
export const NOISE = page(`<body style="margin:0"><canvas width="640" height="480"></canvas><script>
  const context = document.querySelector('canvas').getContext('2d');
  (function tick() {
    const image = context.createImageData(640, 480);
    for (let byte = 0; byte < image.data.length; byte++) image.data[byte] = byte % 4 === 3 ? 255 : Math.random() * 255;
    context.putImageData(image, 0, 0);
    setTimeout(tick, 50);
  })();
</script>`);

export function page(html: string): string {
  return `data:text/html,${encodeURIComponent(html)}`;
}
