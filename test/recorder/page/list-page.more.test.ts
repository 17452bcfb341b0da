import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { type ListedReplay, saveListPage } from '../../../src/recorder/page/list-page.js';
import { saveReplayPage } from '../../../src/recorder/page/replay-file.js';
import { faults, usePerson } from '../../local/pages/support.js';
import { facts, shownAt, useFolder, useMedia, watchRequests } from './support.js';

const made = useMedia();
const folder = useFolder();
const person = usePerson();

const [OLD, FAILED, NEW] = ['2026-02-03-old', '2026-02-04-cart', '2026-02-05-new'];
const ITEMS: readonly ListedReplay[] = [
  item(FAILED, 'cart › pays', '2026-02-04T00:00:00.000Z', {
    failedAt: 6_200,
    length: 8_000,
    facts: { result: 'failed', tags: { team: 'shop' }, service: 'kernel' },
  }),
  item(OLD, 'an old book', '2026-02-03T00:00:00.000Z', { facts: { result: 'succeeded' } }),
  item(NEW, 'the failed login', '2026-02-05T00:00:00.000Z', { facts: { state: 'recording' } }),
];

it('lists replays, the newest first, with result, pool, service, tags, start, length and picture', async () => {
  const page = await person.open(await saveList(ITEMS));
  const rows = page.getByRole('list', { name: 'Replays' }).getByRole('listitem');
  await expect.poll(() => rows.count()).toBe(3);
  const names = await rows.getByRole('heading').getByRole('link').allTextContents();
  expect(names).toEqual(['the failed login', 'cart › pays', 'an old book']);
  const start = await page.evaluate(() =>
    new Date('2026-02-04T00:00:00.000Z').toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' }),
  );
  for (const text of ['Failed', 'scrapers', 'kernel', 'team=shop', start, '8 s'])
    await rows.nth(1).getByText(text, { exact: true }).waitFor();
  await rows.nth(0).getByText('Recording', { exact: true }).waitFor();
  const picture = rows.nth(1).locator('img');
  expect(await picture.getAttribute('loading')).toBe('lazy');
  const width = () => picture.evaluate((image) => (image as HTMLImageElement).naturalWidth);
  await expect.poll(width).toBe(320);
  expect(await page.getByRole('status').textContent()).toBe('3 replays');
  expect(faults(page)).toEqual([]);
});

it('opens a replay, also at the moment of its failure', async () => {
  const list = await saveList(ITEMS);
  const page = await person.open(list);
  await page.getByRole('link', { name: 'Show the failure of cart › pays' }).click();
  await page.waitForURL(new URL(`./${FAILED}/index.html#t=6.2`, list).href);
  await expect.poll(() => shownAt(page)).toBe(6.2);
  await page.goBack();
  await page.getByRole('link', { name: 'cart › pays', exact: true }).click();
  await page.waitForURL(new URL(`./${FAILED}/index.html`, list).href);
});

it.each([
  ['FAILED', ['cart › pays']],
  ['succeeded', ['an old book']],
  ['team=shop', ['cart › pays']],
  ['login', ['the failed login']],
  ['cart ok', []],
  ['scrapers', ['the failed login', 'cart › pays', 'an old book']],
])('finds replays by name, tag and result: %s', async (text, names) => {
  const page = await person.open(await saveList(ITEMS));
  await page.getByRole('searchbox', { name: 'Search by name, tag or result' }).fill(text);
  const links = page.getByRole('listitem').getByRole('heading').getByRole('link');
  await expect.poll(() => links.count()).toBe(names.length);
  expect(await links.allTextContents()).toEqual(names);
  const count = names.length === 3 ? '3 replays' : `${names.length} of 3 replays`;
  expect(await page.getByRole('status').textContent()).toBe(count);
  expect(await page.getByText('No replay matches.').isVisible()).toBe(names.length === 0);
});

it('shows text from outside as text, and no folder whose name is a path', async () => {
  const hostile = '</script><img src=x onerror="document.title=1"> \u202Egpj \uD800';
  const names = ['../secret', 'a/b', '..', '.hidden', 'javascript:1', '', 'x'.repeat(300)];
  const shown = item(OLD, hostile, 'no date', { facts: { tags: { [hostile]: hostile }, pool: hostile } });
  const items = [shown, ...names.map((name) => item(name, 'a path', '2026-02-03T00:00:00.000Z'))];
  const page = await person.open('about:blank');
  const requested = await watchRequests(page);
  await page.goto(await saveList(items));
  const link = page.getByRole('heading').getByRole('link');
  expect(await link.textContent()).toBe(
    String.raw`</script><img src=x onerror="document.title=1"> \u202egpj \ud800`,
  );
  expect(await page.title()).toBe('Replays');
  expect(await page.locator('img[src=x]').count()).toBe(0);
  expect(await page.getByText('a path').count()).toBe(0);
  expect(requested.filter((url) => !/^(file|data):/.test(url))).toEqual([]);
  expect(faults(page)).toEqual([]);
});

it('shows the failed replays alone with one button', async () => {
  const page = await person.open(await saveList(ITEMS));
  const failed = page.getByRole('button', { name: '1 failed' });
  await page.getByRole('searchbox').fill('cart');
  await failed.click();
  expect(await page.getByRole('searchbox').inputValue()).toBe('cart failed');
  const links = page.getByRole('listitem').getByRole('heading').getByRole('link');
  expect(await links.allTextContents()).toEqual(['cart › pays']);
  expect(await failed.getAttribute('aria-pressed')).toBe('true');
  await failed.click();
  expect(await page.getByRole('searchbox').inputValue()).toBe('cart');
  await page.goto(await saveList(ITEMS.slice(1)));
  await page.getByText('2 replays').waitFor();
  expect(await failed.count()).toBe(0);
});

it('can be used with the keyboard only', async () => {
  const list = await saveList(ITEMS);
  const page = await person.open(list);
  for (const key of ['Tab', 'Tab']) await page.keyboard.press(key);
  await page.keyboard.type('team=shop');
  await expect.poll(() => page.getByRole('listitem').count()).toBe(1);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForURL(new URL(`./${FAILED}/index.html`, list).href);
});

it('loads only the pictures in sight, and finds one of 2,000 replays', async () => {
  const many = Array.from({ length: 2_000 }, (_, index) => {
    const start = new Date(Date.UTC(2026, 0, 1) + index * 60_000).toISOString();
    return item(OLD, `test ${index}`, start, { facts: { result: index % 2 ? 'succeeded' : 'failed' } });
  });
  const page = await person.open('about:blank');
  const requested = await watchRequests(page);
  await page.goto(await saveList(many));
  await page.getByText('2000 replays').waitFor();
  const search = page.getByRole('searchbox');
  await search.fill('failed');
  await page.getByText('1000 of 2000 replays').waitFor();
  await search.fill('1234 failed');
  await page.getByText('1 of 2000 replays').waitFor();
  await page.getByRole('link', { name: 'test 1234', exact: true }).waitFor();
  const loaded = await page.evaluate(
    () => [...document.images].filter((image) => image.complete && image.loading === 'lazy').length,
  );
  expect(loaded).toBeGreaterThan(0);
  expect(loaded).toBeLessThan(200);
  expect(requested.some((url) => url.endsWith('/poster.jpg'))).toBe(true);
});

interface More {
  readonly length?: number;
  readonly failedAt?: number;
  readonly facts?: Partial<ListedReplay['facts']>;
}

function item(folder: string, title: string, startedAt: string, more: More = {}): ListedReplay {
  return { ...more, folder, title, facts: { state: 'ready', pool: 'scrapers', startedAt, ...more.facts } };
}

/** Writes a list, and the recordings of the test beside it. @returns The URL of the list. */
async function saveList(items: readonly ListedReplay[]): Promise<string> {
  const own = mkdtempSync(join(folder, 'list-'));
  for (const name of [OLD, FAILED]) {
    mkdirSync(join(own, name));
    writeFileSync(join(own, name, 'video.webm'), made.media.video);
    writeFileSync(join(own, name, 'poster.jpg'), made.media.pictures[0]!);
    await saveReplayPage(join(own, name, 'index.html'), facts([]));
  }
  const path = join(own, 'index.html');
  await saveListPage(path, items);
  return pathToFileURL(path).href;
}
