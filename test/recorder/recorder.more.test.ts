import { sourceOver } from '../../src/wire/cdp-source.js';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { findBrowser } from '../../src/local.js';
import { type Chromium, launchChromium } from '../../src/local/browser/chromium.js';
import { CdpSession, type CdpClient } from '../../src/wire/cdp-client.js';
import type { CdpBrowser } from '../../src/wire/cdp-source.js';
import { type Frame, FrameFile } from '../../src/recorder/frames.js';
import { BrowserPictures } from '../../src/recorder/pictures.js';
import { VideoFile } from '../../src/recorder/video-file.js';
import type { VideoSource } from '../../src/recorder/complete.js';
import { VideoWriter } from '../../src/recorder/video-writer.js';
import { hue, VideoPlayer } from '../local/replays/support.js';

describe('the writer of videos', () => {
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
    let watching: NodeJS.Timeout;
    const watch = () => {
      const began = performance.now();
      most = Math.max(most, memory() - before);
      // A garbage collection takes long on a busy machine, and must leave time for the writer.
      watching = setTimeout(watch, Math.max(250, 10 * (performance.now() - began)));
    };
    watch();
    const video = await newWriter()
      .write(source)
      .finally(() => clearTimeout(watching));
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
});

describe('the pictures of a browser', () => {
  let chromium: Chromium;
  let user: CdpClient;
  beforeAll(async () => {
    const executablePath = await findBrowser();
    chromium = await launchChromium(
      { executablePath, headless: true, args: [] },
      new AbortController().signal,
    );
    user = await sourceOver(chromium.pipe)();
  });
  afterAll(() => chromium.kill());

  /** A capture that Chromium was asked for. Times in ms. */
  interface Capture {
    readonly began: number;
    ended: number;
    /** In base64. */
    data?: unknown;
  }

  class Captures {
    readonly all: Capture[] = [];

    /** Resolves after a second, to the number of captures in which Chromium was at work. */
    readonly inNextSecond = async () => {
      const before = this.all.filter(({ ended }) => ended < Infinity).length;
      await sleep(1_000);
      return this.all.length - before;
    };

    /** The browser, through which all commands of a client pass. */
    readonly browser: CdpBrowser = {
      connect: async ({ onMessage, onEnd }) => {
        const sent = new Map<unknown, Capture>();
        const channel = await chromium.pipe.connect({
          onMessage: (message) => {
            const capture = sent.get(message['id']);
            if (capture) {
              capture.ended = performance.now();
              capture.data = (message['result'] as { data?: unknown } | undefined)?.data;
            }
            onMessage(message);
          },
          onEnd,
        });
        return {
          send: (command) => {
            if (command['method'] === 'Page.captureScreenshot') {
              const capture = { began: performance.now(), ended: Infinity };
              sent.set(command['id'], capture);
              this.all.push(capture);
            }
            channel.send(command);
          },
          close: () => channel.close(),
        };
      },
    };
  }

  async function openPage(html: string): Promise<{ targetId: string; page: CdpSession }> {
    const { targetId } = await user.send('Target.createTarget', { url: `data:text/html,${html}` });
    onTestFinished(async () => void (await user.send('Target.closeTarget', { targetId })));
    return { targetId, page: new CdpSession(user, await user.attach(targetId)) };
  }

  it('leaves a page that changes two thirds of the time, and takes each picture once for all who watch', async () => {
    const captures = new Captures();
    const { targetId } = await openPage(
      '<p id=p><script>setInterval(() => p.textContent = Math.random(), 5)</script>',
    );
    const pictures = new BrowserPictures(sourceOver(captures.browser));
    const seen: Buffer[][] = [[], []];
    const watches = seen.map((list) =>
      pictures.watch(targetId, { interval: 50, onPicture: (jpeg) => void list.push(jpeg) }),
    );
    await expect.poll(() => seen[0]!.length).toBeGreaterThan(5);
    for (const watch of watches) watch.stop();
    expect(seen[1]).toEqual(seen[0]);
    const all = captures.all.map(({ data }) => data);
    for (const jpeg of seen[0]!) expect(all).toContain(jpeg.toString('base64'));
    for (const [index, { began, ended }] of captures.all.entries()) {
      const next = captures.all[index + 1]?.began ?? Infinity;
      // A picture that takes longer is given up.
      const took = Math.min(990, ended - began);
      // The wait for the page's next frames is no work.
      const work = Math.max(took / 4, took - 20);
      expect(next - began).toBeGreaterThan(took + 2 * work);
    }
  });

  it('asks for no picture of a page that is still, until it changes', async () => {
    const captures = new Captures();
    const { targetId, page } = await openPage('<body style="background:teal">');
    const pictures = new BrowserPictures(sourceOver(captures.browser));
    let seen = 0;
    const watch = pictures.watch(targetId, { interval: 50, onPicture: () => void seen++ });
    await expect.poll(captures.inNextSecond).toBe(0);
    const before = seen;
    await page.ask('Runtime.evaluate', { expression: 'document.body.style.background = "navy"' });
    await expect.poll(() => seen).toBe(before + 1);
    await expect.poll(captures.inNextSecond).toBe(0);
    const last = await watch.take();
    expect(last.length).toBeGreaterThan(1_000);
    expect(seen).toBe(before + 1);
    watch.stop();
    await expect(watch.take()).rejects.toThrow('not watched');
  });

  it('goes on after navigations, whose captures Chromium does not answer', async () => {
    const captures = new Captures();
    const { targetId, page } = await openPage('<body style="background:red">');
    const pictures = new BrowserPictures(sourceOver(captures.browser));
    let seen = 0;
    const watch = pictures.watch(targetId, { interval: 10, onPicture: () => void seen++ });
    for (const colour of ['green', 'blue', 'black', 'red', 'green']) {
      await page.ask('Page.navigate', { url: `data:text/html,<body style="background:${colour}">` });
      watch.hint('navigation');
    }
    const before = seen;
    await page.ask('Page.navigate', { url: 'data:text/html,<h1>The end</h1>' });
    await expect.poll(() => seen).toBeGreaterThan(before);
    watch.stop();
  });
});
