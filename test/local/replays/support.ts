import { chromium, type Browser, type Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { findBrowser } from '../../../src/local.js';
import type { BrowserSession, Replay } from '../../../src/service/wire.js';
import type { Api, Reply } from '../support.js';

/** Recordings of a local pool, asked for over HTTP as any client would. */
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
    const reply = await this.ask(session, body);
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

  get(session: BrowserSession, id: string, headers: Record<string, string> = {}): Promise<Response> {
    const { baseUrl, token } = this.#api.pool;
    const url = `${baseUrl}/browsers/${session.session_id}/replays/${id}`;
    return fetch(url, { headers: { authorization: `Bearer ${token}`, ...headers } });
  }

  async isWritten(session: BrowserSession, id: string): Promise<boolean> {
    const { status, body } = await this.get(session, id, { range: 'bytes=0-0' });
    // Unread, it would hold the connection.
    await body?.cancel();
    return status !== 202;
  }

  /** The film, once it is written. */
  async film(session: BrowserSession, id: string): Promise<Buffer> {
    await expect.poll(() => this.isWritten(session, id), { timeout: FILM_LIMIT, interval: 100 }).toBe(true);
    const response = await this.get(session, id);
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    expect(response.headers.get('content-type')).toBe('video/webm');
    return Buffer.from(await response.arrayBuffer());
  }
}

/** Leases a browser until the test is over. */
export async function borrow(api: Api): Promise<BrowserSession> {
  const session = await api.lease();
  onTestFinished(async () => void (await api.release(session)));
  return session;
}

/** A machine that is busy needs its time for a film. */
export const FILM_LIMIT = 60_000;

/** What a film shows, as a browser plays it. */
export interface Screening {
  /** In seconds. */
  duration: number;
  width: number;
  height: number;
  /** Mean colour of the picture at each of the times asked for. */
  colours: Colour[];
}

export type Colour = [red: number, green: number, blue: number];

/** Plays films in a browser that has nothing to do with the pool's. */
export class Cinema {
  #browser: Promise<Browser> | undefined;

  /** @param times Where to look: from 0, the start, to 1, the end. */
  async show(film: Buffer, times: readonly number[]): Promise<Screening> {
    const page = await (await this.#open()).newPage();
    await page.setContent('<video muted></video>');
    const screening = await page.evaluate(watch, { film: film.toString('base64'), times });
    await page.close();
    return screening;
  }

  /** A picture of one colour, as a screencast would send it. */
  async picture(colour: string): Promise<Buffer> {
    const browser = await this.#open();
    const page = await browser.newPage({ viewport: { width: 320, height: 240 } });
    await page.setContent(`<body style="background:${colour}">`);
    return await page.screenshot({ type: 'jpeg' }).finally(() => page.close());
  }

  async close(): Promise<void> {
    await (await this.#browser)?.close();
  }

  #open(): Promise<Browser> {
    return (this.#browser ??= launch());
  }
}

async function launch(): Promise<Browser> {
  return await chromium.launch({ executablePath: await findBrowser(), args: ['--no-sandbox'] });
}

async function watch({ film, times }: { film: string; times: readonly number[] }): Promise<Screening> {
  const video = document.querySelector('video')!;
  const bytes = Uint8Array.from(atob(film), (character) => character.charCodeAt(0));
  video.src = URL.createObjectURL(new Blob([bytes], { type: 'video/webm' }));
  await new Promise((resolve, reject) => {
    video.onloadeddata = resolve;
    video.onerror = () => reject(new Error(video.error?.message));
  });
  const { duration, videoWidth: width, videoHeight: height } = video;
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true })!;
  const colours: Colour[] = [];
  for (const time of times) {
    const sought = new Promise((resolve) => (video.onseeked = resolve));
    video.currentTime = time * duration;
    await sought;
    let picture: Uint8ClampedArray;
    do {
      // A busy browser has the picture a moment later, and draws nothing until then.
      await new Promise((resolve) => requestAnimationFrame(resolve));
      canvas.clearRect(0, 0, 1, 1);
      canvas.drawImage(video, 0, 0, 1, 1);
      picture = canvas.getImageData(0, 0, 1, 1).data;
    } while (picture[3] === 0);
    const [red = 0, green = 0, blue = 0] = picture;
    colours.push([red, green, blue]);
  }
  return { duration, width, height, colours };
}

/** Which of the three a colour is nearest to, or none when it is grey. */
export function hue([red, green, blue]: Colour): 'red' | 'green' | 'blue' | 'grey' {
  const most = Math.max(red, green, blue);
  if (most - Math.min(red, green, blue) < 40) return 'grey';
  if (most === red) return 'red';
  return most === green ? 'green' : 'blue';
}

/** A page of one colour, on which something moves. */
export function coloured(colour: string): string {
  return page(`<body style="background:${colour}"><p id="clock"></p><script>
    (function tick() { clock.textContent = performance.now(); requestAnimationFrame(tick); })();
  </script>`);
}

/** To be evaluated in a page. Loaded, it may still be white. */
export const PAINTED =
  'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))';

/** A page of one colour, on which nothing moves. */
export const STILL = page('<body style="background:blue">');

/** A page whose colour goes around in 15 seconds: no two pictures of a shorter film are alike. */
export const RAINBOW = page(`<body><script>
  (function tick() {
    document.body.style.background = 'hsl(' + (performance.now() / 41.7) % 360 + ' 100% 50%)';
    requestAnimationFrame(tick);
  })();
</script>`);

/** A page of noise, which takes more bytes than any other. */
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

/** Drives a leased browser as a client does, for as long as the function takes. */
export async function drive<Value>(
  { cdp_ws_url }: BrowserSession,
  fn: (page: Page, browser: Browser) => Promise<Value>,
): Promise<Value> {
  const browser = await chromium.connectOverCDP(cdp_ws_url);
  try {
    return await fn(browser.contexts()[0]!.pages()[0]!, browser);
  } finally {
    await browser.close();
  }
}
