import { setTimeout as sleep } from 'node:timers/promises';
import puppeteer from 'puppeteer-core';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { BrowserSession, Replay } from '../../../src/index.js';
import { drive, leaseConnected, startApi, type Api } from '../support.js';
import {
  borrow,
  VideoPlayer,
  coloured,
  firstFrame,
  hue,
  page,
  PAINTED,
  RAINBOW,
  recordedFrames,
  Replays,
  type Colour,
  type Playback,
} from './support.js';

const VIEWPORT = { width: 640, height: 480 };
let api: Api;
let replays: Replays;
const player = new VideoPlayer();
beforeAll(async () => {
  // In a headless shell, no page is in front of the others.
  vi.stubEnv('CHROME_PATH', undefined);
  api = await startApi({ pools: [{ viewport: VIEWPORT }] });
  replays = new Replays(api);
});
afterAll(() => player.close());

/** Relative tolerance of the length of a video. */
const TOLERANCE = 0.1;

/** Minimum distance of different colours, and maximum distance of equal colours after encoding. Black and white: 441. */
const DIFFERENT = 40;
const ALIKE = 8;

it('writes a video with the length and the motion of the page', async () => {
  const session = await borrow(api);
  const { id, frames, shortest, longest, size } = await drive(session, async (page) => {
    await page.goto(RAINBOW);
    const size = await page.evaluate(() => [innerWidth, innerHeight]);
    const asked = performance.now();
    const id = await replays.start(session, { framerate: 10 });
    const started = performance.now();
    await sleep(5_000);
    await expect.poll(async () => (await recordedFrames(id)).length).toBeGreaterThan(26);
    const frames = await recordedFrames(id);
    const shortest = performance.now() - started;
    expect(await replays.stop(session, id)).toBe(204);
    return { id, frames, size, shortest, longest: performance.now() - asked };
  });
  const length = await lengthOf(session, id);
  expect(length).toBeGreaterThan(shortest);
  expect(length).toBeLessThan(longest);
  // Half a second apart, or more.
  const indexes = [0, 5, 10, 15, 20, 25];
  const moments = indexes.map((index) => between(frames[index]!, frames[index + 1]!));
  const { duration, width, height, colours } = await play(session, id, moments);
  expect(Math.abs(duration * 1000 - length)).toBeLessThan(length * TOLERANCE);
  // The encoder needs even sizes.
  expect([width, height]).toEqual(size.map((pixels) => pixels - (pixels % 2)));
  const different = colours.filter((one, index) =>
    colours.slice(0, index).every((other) => distance(one, other) > DIFFERENT),
  );
  expect(different.length).toBeGreaterThan(2);
  const recorded = await player.colours(indexes.map((index) => frames[index]!.jpeg));
  for (const [index, colour] of colours.entries())
    expect(distance(colour, recorded[index]!)).toBeLessThan(ALIKE);
});

/** In milliseconds. */
async function lengthOf(session: BrowserSession, id: string): Promise<number> {
  await replays.video(session, id);
  const replay = await replays.find(session, id);
  return Date.parse(replay.finished_at!) - Date.parse(replay.started_at!);
}

function between(one: { at: number }, next: { at: number }): number {
  return (one.at + next.at) / 2;
}

/** Plays the video of a recording at some moments, in ms from its start. */
async function play(session: BrowserSession, id: string, moments: readonly number[]): Promise<Playback> {
  const length = await lengthOf(session, id);
  return await player.play(
    await replays.video(session, id),
    moments.map((moment) => moment / length),
  );
}

it('shows the page that was last opened or used, and another one after it closes', async () => {
  const session = await borrow(api);
  const scenes = new Scenes();
  const id = await drive(session, async (red, browser) => {
    await red.goto(coloured('red'));
    const id = await replays.start(session);
    await scenes.wait(id, 'red');
    const green = await browser.contexts()[0]!.newPage();
    await green.goto(coloured('lime'));
    await scenes.wait(id, 'green');
    const blue = await (await browser.newContext()).newPage();
    await blue.goto(coloured('blue'));
    await scenes.wait(id, 'blue');
    await red.click('p');
    await scenes.wait(id, 'red');
    await red.close();
    await scenes.wait(id, 'blue');
    await blue.close();
    await scenes.wait(id, 'green');
    expect(await scenesOf(id)).toEqual(scenes.hues);
    await replays.stop(session, id);
    return id;
  });
  expect((await play(session, id, scenes.moments)).colours.map(hue)).toEqual(scenes.hues);
});

it('shows the page that is brought to the front', async () => {
  const session = await borrow(api);
  const browser = await puppeteer.connect({ browserWSEndpoint: session.cdp_ws_url, defaultViewport: null });
  const scenes = new Scenes();
  const red = await browser.newPage();
  await red.goto(coloured('red'));
  const id = await replays.start(session);
  const blue = await browser.newPage();
  await blue.goto(coloured('blue'));
  await scenes.wait(id, 'blue');
  await red.bringToFront();
  await scenes.wait(id, 'red');
  expect((await scenesOf(id)).slice(-2)).toEqual(scenes.hues);
  await replays.stop(session, id);
  await Promise.all([red.close(), blue.close()]);
  await browser.disconnect();
  expect((await play(session, id, scenes.moments)).colours.map(hue)).toEqual(scenes.hues);
});

/** What a recording showed, one after another. */
class Scenes {
  readonly hues: string[] = [];
  /** A moment of each scene, in ms from the start of the recording. */
  readonly moments: number[] = [];

  /** Waits until the last two frames show a colour. */
  async wait(id: string, colour: string): Promise<void> {
    let frames: Awaited<ReturnType<typeof recordedFrames>> = [];
    const look = async () => {
      frames = (await recordedFrames(id)).slice(-2);
      return (await player.colours(frames.map(({ jpeg }) => jpeg))).map(hue);
    };
    await expect.poll(look).toEqual([colour, colour]);
    this.hues.push(colour);
    this.moments.push(between(frames[0]!, frames[1]!));
  }
}

/** The colours of all frames so far, each once in a row. A page that is opening is grey. */
async function scenesOf(id: string): Promise<string[]> {
  const pictures = (await recordedFrames(id)).map(({ jpeg }) => jpeg);
  const hues = (await player.colours(pictures)).map(hue).filter((colour) => colour !== 'grey');
  return hues.filter((colour, index) => colour !== hues[index - 1]);
}

function distance(one: Colour, other: Colour): number {
  return Math.hypot(...one.map((part, index) => part - other[index]!));
}

/** Milliseconds that the service waits for the last picture at the end of a recording. */
const PICTURE_TIMEOUT = 1_000;

it('shows what the page showed when the recording stopped', async () => {
  const session = await borrow(api);
  const id = await drive(session, async (page) => {
    for (;;) {
      await page.goto(coloured('red'));
      await page.evaluate(PAINTED);
      // One frame per second: no frame is due between the change and the stop.
      const id = await replays.start(session, { framerate: 1 });
      await sleep(1_500);
      await page.evaluate('document.body.style.background = "blue"');
      await page.evaluate(PAINTED);
      const asked = performance.now();
      await replays.stop(session, id);
      if (performance.now() - asked < PICTURE_TIMEOUT) return id;
      // The browser was too busy for a picture.
    }
  });
  const { colours } = await player.play(await replays.video(session, id), [0, 1]);
  expect(colours.map(hue)).toEqual(['red', 'blue']);
});

/** A button that gives its page the next colour. From the first click on, the page changes all the time. */
const COLOURS = ['red', 'lime', 'blue', 'red', 'lime', 'blue'];
/** As `hue` names them. */
const SEEN = COLOURS.map((colour) => (colour === 'lime' ? 'green' : colour));
const CHANGING = page(`<body><button>Next</button><p id="clock"></p><script>
  const colours = ${JSON.stringify(COLOURS)};
  document.querySelector('button').onclick = () => {
    if (colours.length === ${COLOURS.length}) setInterval(() => (clock.textContent = performance.now()), 100);
    document.body.style.background = colours.shift() ?? 'white';
  };
</script>`);

it('has a picture of the state after each click, with its time between the clicks in the timeline', async () => {
  const session = await borrow(api);
  const { id, frames } = await drive(session, async (page) => {
    await page.goto(CHANGING);
    const id = await replays.start(session);
    // The page is still before the first click.
    await sleep(2_000);
    for (const [index, colour] of SEEN.entries()) {
      await page.click('button');
      await expect.poll(async () => (await scenesOf(id)).at(-1)).toBe(colour);
      // A picture that was begun before this click could show what the next click has changed.
      const sinceClick = async () =>
        (await recordedFrames(id)).at(-1)!.at - ((await clicksOf(session, id))[index] ?? Infinity);
      await expect.poll(sinceClick).toBeGreaterThanOrEqual(0);
    }
    const frames = await recordedFrames(id);
    await replays.stop(session, id);
    return { id, frames };
  });
  const clicks = await clicksOf(session, id);
  expect(clicks).toHaveLength(COLOURS.length);
  const hues = (await player.colours(frames.map(({ jpeg }) => jpeg))).map(hue);
  const scenes = frames.flatMap(({ at }, index) =>
    hues[index] === hues[index - 1] ? [] : [{ at, hue: hues[index] }],
  );
  const afterClicks = scenes.slice(-SEEN.length);
  expect(afterClicks.map((scene) => scene.hue)).toEqual(SEEN);
  for (const [index, { at }] of afterClicks.entries()) {
    expect(at).toBeGreaterThan(clicks[index - 1] ?? 0);
    expect(at).toBeLessThan(clicks[index + 1] ?? Infinity);
  }
});

/** The times of all clicks so far. */
async function clicksOf(session: BrowserSession, id: string): Promise<number[]> {
  const { timeline } = await replays.facts(session, id);
  return timeline.filter(({ kind }) => kind === 'click').map(({ at }) => at);
}

it('takes no pictures of a still page, and one of each change that the page makes by itself', async () => {
  const session = await borrow(api);
  await drive(session, async (page) => {
    await page.goto(coloured('white').replace('setInterval', 'void'));
    const id = await replays.start(session);
    await sleep(3_000);
    const before = (await recordedFrames(id)).length;
    await sleep(2_000);
    expect(await recordedFrames(id)).toHaveLength(before);
    await page.evaluate('document.body.style.background = "blue"');
    await expect.poll(async () => (await scenesOf(id)).at(-1)).toBe('blue');
    await replays.stop(session, id);
  });
});

it('lists the recordings of all leases of a session, finished when their videos are written', async () => {
  const first = await borrow(api);
  const earlier = await replays.list(first);
  const one = await replays.start(first);
  await api.release(first);
  const second = await borrow(api);
  expect(second.session_id).toBe(first.session_id);
  const { body } = await replays.ask(second);
  const { replay_id: two, replay_view_url } = body as Replay;
  const listed = (await replays.list(second)).slice(earlier.length);
  expect(listed.map(({ replay_id }) => replay_id)).toEqual([one, two]);
  expect(Date.parse(listed[0]!.started_at!)).toBeLessThan(Date.parse(listed[1]!.started_at!));
  expect(listed[1]).not.toHaveProperty('finished_at');
  // The link is known from the start.
  const url = new URL(replay_view_url!);
  expect(url.origin + url.pathname).toBe(`${api.pool.baseUrl}/replay`);
  expect(listed[1]!.replay_view_url).toBe(replay_view_url);
  await replays.stop(second, two!);
  await replays.written(second, two!);
  expect((await replays.list(second)).every(({ finished_at }) => finished_at !== undefined)).toBe(true);
});

it('answers 202 until the video is written, and serves ranges of it afterwards', async () => {
  const session = await borrow(api);
  const { replay_id: id } = await replays.record(session, async (id) => {
    const early = await replays.get(session, id);
    expect([early.status, early.headers.get('retry-after')]).toEqual([202, '1']);
  });
  const video = await replays.video(session, id!);
  const size = video.length;
  for (const [range, start, end] of [
    ['bytes=100-199', 100, 199],
    ['bytes=7-', 7, size - 1],
    ['bytes=-2', size - 2, size - 1],
    [`bytes=-${size + 1}`, 0, size - 1],
    [`bytes=8-${size + 9}`, 8, size - 1],
  ] as const) {
    const part = await replays.get(session, id!, { range });
    expect(part.status, range).toBe(206);
    expect(part.headers.get('content-range')).toBe(`bytes ${start}-${end}/${size}`);
    expect(Buffer.from(await part.arrayBuffer())).toEqual(video.subarray(start, end + 1));
  }
  // Several ranges, and another unit.
  for (const range of ['bytes=0-1,3-4', 'seconds=1-2']) {
    const whole = await replays.get(session, id!, { range });
    expect(whole.status, range).toBe(200);
    expect(whole.headers.get('accept-ranges')).toBe('bytes');
    expect(Buffer.from(await whole.arrayBuffer())).toEqual(video);
  }
  for (const range of [`bytes=${size}-`, `bytes=${size + 9}-${size + 10}`, 'bytes=4-2', 'bytes=-0']) {
    const refused = await replays.get(session, id!, { range });
    expect([refused.status, refused.headers.get('content-range')]).toEqual([416, `bytes */${size}`]);
    await refused.body?.cancel();
  }
});

it('does not count as activity of the lease', async () => {
  const brief = await startApi({ pools: [{ timeoutSeconds: 2 }] });
  const short = new Replays(brief);
  const { session, socket } = await leaseConnected(brief, 'default');
  const { expired } = brief.pool.stats();
  const id = await short.start(session);
  socket.close();
  await expect.poll(() => brief.pool.stats().expired).toBe(expired + 1);
  await short.video(session, id);
  expect(await short.list(session)).toMatchObject([{ replay_id: id, finished_at: expect.any(String) }]);
});

it('refuses wrong fields, each with the reason', async () => {
  const session = await borrow(api);
  const whole = 'must be a whole number,';
  for (const [body, ...messages] of [
    [{ record_audio: true }, 'record_audio must be false: the local pool records no audio.'],
    [
      { framerate: 61, max_duration_in_seconds: -1, frame_rate: 10 },
      `framerate ${whole} from 1 to 60, not 61.`,
      `max_duration_in_seconds ${whole} 1 or more, not -1.`,
      'frame_rate is unknown. Known fields: framerate, max_duration_in_seconds, record_audio.',
    ],
  ] as const) {
    const reply = await replays.ask(session, body);
    expect(reply.status).toBe(400);
    const details = messages.map((message) => ({ code: 'invalid_input', message }));
    expect(reply.body.details).toHaveLength(details.length);
    expect(reply.body.details).toEqual(expect.arrayContaining(details));
  }
});

it('records only leased browsers, with at most four recordings at the same time', async () => {
  const session = await borrow(api);
  for (let count = 0; count < 4; count++) await replays.start(session);
  expect(await replays.ask(session)).toMatchObject({ status: 409, body: { code: 'too_many_recordings' } });
  await api.release(session);
  expect((await replays.ask(session)).status).toBe(404);
  expect((await api.call('GET', `/browsers/${session.session_id}/replays/none`)).status).toBe(404);
  expect((await api.call('POST', `/browsers/${session.session_id}/replays/none/stop`)).status).toBe(404);
  expect((await api.call('POST', '/browsers/none/replays')).status).toBe(404);
});

it('refuses headless browsers with the quirk recordsHeadless: false, as the public service does', async () => {
  const strict = await startApi({ quirks: { recordsHeadless: false } });
  const session = await borrow(strict);
  expect(await new Replays(strict).ask(session)).toMatchObject({
    status: 400,
    body: { code: 'headless_not_supported' },
  });
});

it('records every lease of a pool with recordAll', async () => {
  const keen = await startApi({ pools: [{ recordAll: true }] });
  const session = await firstFrame(() => borrow(keen));
  await keen.release(session, false);
  const [id] = await new Replays(keen).ids(session);
  await new Replays(keen).video(session, id!);
});
