import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { findBrowser } from '../../src/local.js';
import { launchChromium, type Chromium } from '../../src/local/browser/chromium.js';
import { CdpConnection, type CdpBrowser, type CdpSession } from '../../src/net/cdp-connection.js';
import { BrowserPictures } from '../../src/recorder/pictures.js';
import { Recorder } from '../../src/recorder/recorder.js';

let chromium: Chromium;
let user: CdpConnection;
beforeAll(async () => {
  const executablePath = await findBrowser();
  chromium = await launchChromium({ executablePath, headless: true, args: [] }, new AbortController().signal);
  user = await CdpConnection.open(chromium.pipe);
});
afterAll(() => chromium.kill());

/** The captures that Chromium was asked for, with their durations in ms. */
class Captures {
  readonly durations: number[] = [];

  /** The browser, through which all commands of a client pass. */
  readonly browser: CdpBrowser = {
    connect: async ({ onMessage, onEnd }) => {
      const sent = new Map<unknown, number>();
      const channel = await chromium.pipe.connect({
        onMessage: (message) => {
          const began = sent.get(message['id']);
          if (began !== undefined) this.durations.push(performance.now() - began);
          onMessage(message);
        },
        onEnd,
      });
      return {
        send: (command) => {
          if (command['method'] === 'Page.captureScreenshot') sent.set(command['id'], performance.now());
          channel.send(command);
        },
        close: () => channel.close(),
      };
    },
  };
}

async function openPage(html: string): Promise<{ targetId: string; page: CdpSession }> {
  const { targetId } = await user.ask('Target.createTarget', { url: `data:text/html,${html}` });
  onTestFinished(async () => void (await user.ask('Target.closeTarget', { targetId })));
  return { targetId: String(targetId), page: await user.attach(targetId) };
}

it('leaves a page that changes nine tenths of the time, and takes each picture once for all who watch', async () => {
  const captures = new Captures();
  const { targetId } = await openPage(
    '<p id=p><script>setInterval(() => p.textContent = Math.random(), 5)</script>',
  );
  const pictures = new BrowserPictures(captures.browser);
  const seen: Buffer[][] = [[], []];
  const watches = seen.map((list) =>
    pictures.watch(targetId, { interval: 50, onPicture: (jpeg) => void list.push(jpeg) }),
  );
  const began = performance.now();
  await expect.poll(() => captures.durations.length, { timeout: 60_000 }).toBeGreaterThan(5);
  const spent = captures.durations.reduce((sum, one) => sum + one, 0);
  // The last pause may not be over.
  expect(spent - captures.durations.at(-1)!).toBeLessThan((performance.now() - began) * 0.11);
  for (const list of seen) expect(list).toHaveLength(captures.durations.length);
  expect(seen[1]).toEqual(seen[0]);
  for (const watch of watches) watch.stop();
});

it('asks for no picture of a page that is still, until it changes', async () => {
  const captures = new Captures();
  const { targetId, page } = await openPage('<body style="background:teal">');
  const pictures = new BrowserPictures(captures.browser);
  let seen = 0;
  const watch = pictures.watch(targetId, { interval: 50, onPicture: () => void seen++ });
  const isStill = async () => {
    const before = captures.durations.length;
    await sleep(1_000);
    return captures.durations.length - before;
  };
  await expect.poll(isStill, { timeout: 20_000 }).toBe(0);
  const before = seen;
  await page.ask('Runtime.evaluate', { expression: 'document.body.style.background = "navy"' });
  await expect.poll(() => seen).toBe(before + 1);
  await expect.poll(isStill, { timeout: 20_000 }).toBe(0);
  const last = await watch.take();
  expect(last.length).toBeGreaterThan(1_000);
  expect(seen).toBe(before + 1);
  watch.stop();
  await expect(watch.take()).rejects.toThrow('not watched');
});

it('goes on after navigations, whose captures Chromium does not answer', async () => {
  const captures = new Captures();
  const { targetId, page } = await openPage('<body style="background:red">');
  const pictures = new BrowserPictures(captures.browser);
  let seen = 0;
  const watch = pictures.watch(targetId, { interval: 10, onPicture: () => void seen++ });
  for (const colour of ['green', 'blue', 'black', 'red', 'green']) {
    await page.ask('Page.navigate', { url: `data:text/html,<body style="background:${colour}">` });
    watch.hint('navigation');
  }
  const before = seen;
  await page.ask('Page.navigate', { url: 'data:text/html,<h1>The end</h1>' });
  await expect.poll(() => seen, { timeout: 20_000 }).toBeGreaterThan(before);
  watch.stop();
});

it('takes no pictures while a recording is paused, and goes on afterwards', async () => {
  const limits = { maxBytes: 1e8, maxTotalBytes: 1e8, keep: 10 };
  const recorder = new Recorder({ limits, launch: () => Promise.reject(new Error('no video')) });
  onTestFinished(() => recorder.close());
  await openPage('<p id=p><script>setInterval(() => p.textContent = Math.random(), 20)</script>');
  const session = { sessionId: 's', leaseId: 'l', pool: 'p' };
  const { signal } = new AbortController();
  const recording = await recorder.record(chromium, session, { framerate: 20 }, signal);
  recording.pause();
  const before = recording.frameBytes;
  expect(before).toBeGreaterThan(0);
  await sleep(1_500);
  expect(recording.frameBytes).toBe(before);
  recording.resume();
  await expect.poll(() => recording.frameBytes, { timeout: 20_000 }).toBeGreaterThan(before);
});
