import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { BrowserPool, type RunEvent } from '../../../src/index.js';
import { withPooledBrowser } from '../../../src/playwright.js';
import { cdp } from '../../../src/services.js';
import { hue, VideoPlayer } from '../../local/replays/support.js';
import { startChromium } from '../../support/chromium.js';
import { useLocalPool } from '../../support/local.js';
import { COMPLETE, readReplay, RECORD, told } from './support.js';

const folder = mkdtempSync(join(tmpdir(), 'hidden-'));
const player = new VideoPlayer();
afterAll(async () => {
  await player.close();
  rmSync(folder, { recursive: true });
});

const NUMBER = '4929123456781234';
/** Fills most of the page, in a colour that nothing else has. */
const PAGE = `<title>Pay</title><body style="margin: 0; background: white">
  <button id="card" style="background: red; width: 100vw; height: 80vh; border: 0">${NUMBER}</button>
  <button id="pay" onclick="document.title = 'Paid'">Pay</button>`;

const pay = async ({ page }: { page: Page }) => {
  await page.setContent(PAGE);
  await page.click('#card');
  await page.click('#pay');
  await sleep(1_500);
};

/** The colour of the video for most of its time. */
async function hueOf(video: string): Promise<string> {
  const { colours } = await player.play(readFileSync(video), [0.7]);
  return hue(colours[0]!);
}

it('a lease with hide has no value of a hidden element in its timeline, its video or its other files', async () => {
  await using browser = await startChromium();
  await using pool = new BrowserPool('shop', { service: cdp(browser.url) });
  const seen = await withPooledBrowser(pool, pay, { ...RECORD, recording: { folder } });
  const shown = readReplay(seen.replays[0]!);
  expect(await hueOf(join(shown.own, 'video.webm'))).toBe('red');
  expect(told(shown.facts, 'click').join()).toContain(NUMBER);
  const run = await withPooledBrowser(pool, pay, { ...RECORD, recording: { folder, hide: ['#card'] } });
  expect(run).toMatchObject({ replayStatus: 'ready', cleanupErrors: [] });
  const { files, own, facts } = readReplay(run.replays[0]!);
  expect(files).toEqual(COMPLETE);
  for (const file of files) expect(readFileSync(join(own, file)).includes(NUMBER)).toBe(false);
  expect(told(facts, 'click')).toEqual(['click button', 'click button#pay Pay']);
  expect(await hueOf(join(own, 'video.webm'))).not.toBe('red');
});

const used = useLocalPool({ pools: [{ name: 'test', size: 1, recordAll: true }] });

it('a lease with hide says which service has recorded it without a mask, and has a masked replay of its own', async () => {
  const events: RunEvent[] = [];
  const run = await withPooledBrowser(used.pool, pay, {
    ...RECORD,
    recording: { folder, hide: ['#card'] },
    onEvent: (event) => void events.push(event as RunEvent),
  });
  expect(run.cleanupErrors.map(({ message }) => message)).toEqual([
    expect.stringMatching(/service kernel has recorded the lease, too, and masks nothing/),
  ]);
  expect(run.replays.map(({ recorded_by: by }) => by)).toEqual([undefined, 'client']);
  const { own } = readReplay(run.replays[1]!);
  expect(await hueOf(join(own, 'video.webm'))).not.toBe('red');
  expect(events.some(({ type }) => type === 'recording-unavailable')).toBe(false);
});
