import type { Page } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import type { BrowserSession } from '../../../src/index.js';
import { Replays } from '../replays/support.js';
import { drive, serveSite, startApi } from '../support.js';
import { faults, usePerson } from './support.js';

const api = await startApi({ pools: [{ viewport: { width: 800, height: 600 }, timeoutSeconds: 600 }] });
const replays = new Replays(api);
const person = usePerson();
const site = await serveSite({ '/shop': '<h1>A shop</h1><script src="script.js"></script>' });
let session: BrowserSession;
let url: string;

beforeAll(async () => {
  session = await api.lease({ name: 'cart.spec' });
  const replay = await replays.record(session, () => shop(session));
  url = replay.replay_view_url!;
});

it('plays the video at the chosen speed, with buttons and keys, and has a full screen mode', async () => {
  const page = await person.open(url);
  // Slow, so that the video does not end during the test.
  await page.getByLabel('Speed').selectOption('0.25');
  await page.getByRole('button', { name: 'Play' }).click();
  await expect.poll(() => at(page)).toBeGreaterThan(50);
  expect(await video(page, 'playbackRate')).toBe(0.25);
  await page.getByRole('button', { name: 'Pause' }).click();
  expect(await video(page, 'paused')).toBe(true);
  for (const key of [']', '[']) await page.keyboard.press(key);
  await expect.poll(() => video(page, 'playbackRate')).toBe(0.25);
  for (const isPaused of [false, true]) {
    await page.keyboard.press(' ');
    await expect.poll(() => video(page, 'paused')).toBe(isPaused);
  }
  await page.getByRole('button', { name: 'Full screen' }).click();
  await expect.poll(() => page.evaluate(() => document.fullscreenElement?.id)).toBe('stage');
  expect(faults(page)).toEqual([]);
});

it('seeks with the scrub bar, with keys and with events, whose address it keeps', async () => {
  const page = await person.open(url);
  await page.getByLabel('Position in the video').fill('500');
  await expect.poll(() => at(page)).toBe(500);
  await expect.poll(() => video(page, 'seekable')).toBe(true);
  await page.keyboard.press('End');
  await page.keyboard.press('Home');
  await expect.poll(() => at(page)).toBe(0);
  const click = page.getByRole('link', { name: /Click/ });
  const href = await click.getAttribute('href');
  expect(href).toMatch(/^#t=\d+(\.\d+)?$/);
  await click.click();
  const moment = Math.round(Number(href!.slice(3)) * 1000);
  expect(moment).toBeGreaterThan(0);
  await expect.poll(() => at(page)).toBe(moment);
  expect(new URL(page.url()).hash).toBe(href);
  await expect.poll(() => click.getAttribute('aria-current')).toBe('true');
  await page.keyboard.press('p');
  await expect.poll(() => click.getAttribute('aria-current')).toBe('false');
  await page.keyboard.press('n');
  await expect.poll(() => click.getAttribute('aria-current')).toBe('true');
  await page.keyboard.press(']');
  expect(await video(page, 'playbackRate')).toBe(2);
  // Also when the address is there already.
  await click.click();
  await page.keyboard.press('Home');
  await expect.poll(() => at(page)).toBe(0);
  await click.click();
  await expect.poll(() => at(page)).toBe(moment);
});

it('shows facts of the session, and its events with the status of requests, of which groups can be hidden', async () => {
  const page = await person.open(url);
  await expect.poll(() => page.title()).toBe('cart.spec · Replay');
  for (const fact of [session.session_id, 'cart.spec', 'default', /^0:\d\d\.\d/, /kB|MB/]) {
    await page
      .locator('#facts')
      .getByText(fact, { exact: typeof fact === 'string' })
      .first()
      .waitFor();
  }
  const warning = page.getByRole('link', { name: /the cart is empty/ });
  await warning.waitFor();
  await page.getByRole('button', { name: /^Console/ }).click();
  await expect.poll(() => warning.count()).toBe(0);
  await page.getByRole('button', { name: /^Console/ }).click();
  await warning.waitFor();
  await page.getByRole('link', { name: /Navigation 200 OK .*\/shop$/ }).waitFor();
  await page.getByRole('link', { name: /Navigation 404 Not Found .*\/missing$/ }).waitFor();
  await page.getByRole('link', { name: /Request failed 404 Not Found .*\/script\.js$/ }).waitFor();
  // A failed navigation is an error, and no ordinary page.
  await page.getByRole('button', { name: /^Pages/ }).click();
  await page.getByRole('button', { name: 'Errors 2' }).waitFor();
  expect(await page.getByRole('link', { name: /404/ }).count()).toBe(2);
  expect(await page.getByRole('link', { name: /200 OK/ }).count()).toBe(0);
});

it('starts at the moment that the address names, and shows the moment of a pause there', async () => {
  const page = await person.open(`${url}#t=1.3`);
  await expect.poll(() => at(page)).toBe(1_300);
  await page.goto(`${url}#t=2.5`);
  await expect.poll(() => at(page)).toBe(2_500);
  await page.getByLabel('Speed').selectOption('0.25');
  await page.getByRole('button', { name: 'Play' }).click();
  await expect.poll(() => at(page)).toBeGreaterThan(2_500);
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect.poll(() => page.evaluate(() => location.hash)).toMatch(/^#t=2\.[5-9]|^#t=[3-9]/);
  const paused = await at(page);
  await expect.poll(() => page.evaluate(() => location.hash)).toBe(`#t=${paused / 1000}`);
  const again = await person.open(page.url());
  await expect.poll(() => at(again)).toBe(paused);
});

it('says that the recording runs, and shows the video as soon as it is written', async () => {
  const id = await replays.start(session);
  const page = await person.open((await replays.find(session, id)).replay_view_url!);
  await page.getByRole('heading', { name: 'Still recording' }).waitFor();
  await shop(session);
  await replays.stop(session, id);
  await page.getByLabel('Video of the session').waitFor();
  expect(faults(page)).toEqual([]);
});

it('shows the video after the session ended', async () => {
  await api.release(session, false);
  const page = await person.open(url);
  await expect.poll(() => video(page, 'seekable')).toBe(true);
});

async function shop(leased: BrowserSession): Promise<void> {
  await drive(leased, async (page) => {
    await page.goto(`${site}/shop`);
    await page.goto(`${site}/missing`);
    await page.goto(
      'data:text/html,<title>Cart</title><button onclick="document.body.append(1)">Buy</button>',
    );
    await page.evaluate(() => console.warn('the cart is empty'));
    await page.getByRole('button').click();
    await page.getByText('1').waitFor();
    // The video needs time before and after the click, and must not end during the test.
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 5_000)));
  });
}

/** The position of the video in milliseconds. */
function at(page: Page): Promise<number> {
  const milliseconds = (video: Element) => Math.round((video as HTMLVideoElement).currentTime * 1000);
  return page.locator('video').evaluate(milliseconds);
}

function video(page: Page, what: 'playbackRate' | 'paused' | 'seekable'): Promise<unknown> {
  return page.locator('video').evaluate((element, what) => {
    const video = element as HTMLVideoElement;
    return what === 'seekable' ? video.seekable.length > 0 && video.seekable.end(0) > 0 : video[what];
  }, what);
}
