import { setTimeout as sleep } from 'node:timers/promises';
import type { Locator, Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { Replays } from '../replays/support.js';
import { drive, startApi, titled } from '../support.js';
import { faults, usePerson } from './support.js';

const api = await startApi({
  pools: [
    { name: 'tests', size: 2, timeoutSeconds: 600 },
    { name: 'scrapers', timeoutSeconds: 600 },
  ],
  quirks: { liveViewsHeadless: true },
});
const person = usePerson();

it('shows a lease with its name and tags until it ends, and waiting requests', async () => {
  const page = await person.open(api.pool.dashboardUrl);
  const tests = page.getByRole('region', { name: 'tests' }).first();
  await tests.getByText('0 of 2 leased').waitFor();
  // The last two are of the library, which recognizes its lease by them.
  const owner = `machine-1/42/${new Date().toISOString()}/600000`;
  const tags = { worker: '3', 'pooled-browser-lease': 'an-id', 'pooled-browser-owner': owner };
  const session = await api.lease({ name: 'cart.spec', tags }, 'tests');
  await page.getByRole('banner').getByText('lease granted', { exact: true }).waitFor();
  expect(await tests.getByRole('figure').count()).toBe(0);
  const card = cardOf(page, 'tests', 'cart.spec');
  await card.getByText('leased', { exact: true }).waitFor();
  await card.getByRole('heading', { name: 'cart.spec' }).waitFor();
  await cardOf(page, 'tests', 'idle')
    .getByText(/^since \d/)
    .waitFor();
  await card.getByText('worker=3').waitFor();
  await card.getByText(session.session_id.slice(0, 8)).waitFor();
  await card.getByText(/^for \d+ s of 10 min 0 s$/).waitFor();
  expect(await page.getByText(/an-id|machine-1/).count()).toBe(0);
  const other = await api.lease({}, 'tests');
  const late = api.lease({ name: 'late', acquire_timeout_seconds: 60 }, 'tests');
  const queue = page.getByRole('list', { name: 'Waiting requests of tests' });
  await queue.getByText('late').waitFor();
  // A shorter wait would not be shown.
  await sleep(200);
  await api.release(session);
  await cardOf(page, 'tests', 'late').getByText('leased', { exact: true }).waitFor();
  await expect.poll(() => card.count()).toBe(0);
  await tests.getByText(/^Waiting time in the last 10 minutes: at most \d/).waitFor();
  const ended = page.getByRole('list', { name: 'Finished leases' }).getByText('cart.spec');
  await expect.poll(async () => (await ended.boundingBox())?.y).toBeLessThan(800);
  await Promise.all([api.release(other), api.release(await late)]);
  await tests.getByText('0 of 2 leased').waitFor();
  expect(faults(page)).toEqual([]);
});

it('shows title, address and picture of the page that a browser shows, and reacts to clicks meanwhile', async () => {
  const session = await api.lease({ name: 'shown' }, 'scrapers');
  const page = await person.open(api.pool.dashboardUrl);
  const card = cardOf(page, 'scrapers', 'shown');
  await drive(session, async (_first, client) => {
    const leased = await (await client.newContext()).newPage();
    await leased.goto(`${api.pool.baseUrl}/replay?token=secret-1`);
    await card.getByText(`${api.pool.baseUrl}/replay`, { exact: true }).waitFor();
    const picture = card.getByRole('img', { name: 'The page of shown' });
    const { height } = (await card.locator('.shot').boundingBox())!;
    await expect
      .poll(() => picture.evaluate((image) => (image as HTMLImageElement).naturalWidth))
      .toBeGreaterThan(0);
    // The other browsers do not move.
    const idle = cardOf(page, 'tests', 'idle').first().locator('.shot');
    for (const shot of [card.locator('.shot'), idle])
      expect((await shot.boundingBox())!.height).toBeCloseTo(height, 0);
    await leased.goto(titled('A shop'));
    await card.getByText('A shop').waitFor();
    expect(await page.content()).not.toContain('secret-1');
    expect(await leased.evaluate('[innerWidth, innerHeight, document.visibilityState]')).toEqual([
      1280,
      720,
      'visible',
    ]);
    await page.getByRole('button', { name: 'Release shown' }).hover();
    await page.mouse.down();
    await leased.goto(titled('Another page'));
    await card.getByText('Another page').waitFor();
    await page.mouse.up();
    await page.getByRole('dialog', { name: 'Release shown?' }).waitFor();
  });
  await api.release(session, false);
  expect(faults(page)).toEqual([]);
});

it('releases and destroys browsers after a confirmation, and lists the ended leases', async () => {
  const page = await person.open(api.pool.dashboardUrl);
  const ended = page.getByRole('list', { name: 'Finished leases' }).getByRole('listitem');
  const [one, two] = [await api.lease({ name: 'one' }, 'tests'), await api.lease({ name: 'two' }, 'tests')];
  await page.getByRole('button', { name: 'Release one' }).click();
  await page.getByRole('dialog', { name: 'Release one?' }).getByRole('button', { name: 'Cancel' }).click();
  expect((await api.record('tests')).acquired_count).toBe(2);
  const fills: string[] = [];
  for (const { text, label, consequence, name, outcome } of ENDS) {
    const button = page.getByRole('button', { name: label, exact: true });
    expect(await button.textContent()).toBe(text);
    fills.push(await colourOf(button));
    await button.click();
    const dialog = page.getByRole('dialog', { name: `${label}?` });
    await dialog.getByText('loses its connection').waitFor();
    await dialog.getByText(consequence).waitFor();
    const yes = dialog.getByRole('button', { name: text });
    fills.push(await colourOf(yes));
    await yes.click();
    const facts = new RegExp(`${name}.*ran (\\d+\\.\\d s|\\d+ min \\d+ s)`);
    await ended.filter({ hasText: outcome }).filter({ hasText: facts }).waitFor();
  }
  // Nobody takes one button for the other.
  expect(new Set(fills).size).toBe(4);
  expect(await api.release(one)).toBe(404);
  expect((await api.call('GET', `/browsers/${two.session_id}`)).status).toBe(404);
  await expect.poll(async () => (await api.record('tests')).available_count).toBe(2);
  expect(faults(page)).toEqual([]);
});

it('filters leases by name and by tag', async () => {
  const red = await api.lease({ name: 'red', tags: { team: 'colours' } }, 'tests');
  const blue = await api.lease({ name: 'blue' }, 'tests');
  const page = await person.open(api.pool.dashboardUrl);
  const filter = page.getByRole('searchbox', { name: 'Filter by name or tag' });
  const cards = page.getByRole('list', { name: 'Browsers of tests' }).getByRole('listitem');
  await expect.poll(() => cards.count()).toBe(2);
  for (const [text, shown] of [
    ['BLU', 'blue'],
    ['team=col', 'red'],
  ] as const) {
    await filter.fill(text);
    await expect.poll(() => cards.count()).toBe(1);
    await cards.getByText(shown, { exact: true }).waitFor();
  }
  await Promise.all([api.release(red), api.release(blue)]);
  await page.getByText('No browser and no request of this pool matches.').first().waitFor();
  const ended = page.getByRole('list', { name: 'Finished leases' }).getByRole('listitem');
  await ended.getByText('red', { exact: true }).waitFor();
  await filter.fill('');
  await expect.poll(() => cards.count()).toBe(2);
});

it('links to the live view, once to watch only and once to control', async () => {
  const session = await api.lease({ name: 'watched' }, 'scrapers');
  const page = await person.open(api.pool.dashboardUrl);
  for (const [link, state] of [
    ['Watch watched', 'Watching'],
    ['Control watched', 'In control'],
  ] as const) {
    const opened = page.context().waitForEvent('page');
    await page.getByRole('link', { name: link }).click();
    const view = await opened;
    await expect.poll(() => view.getByRole('status').textContent()).toBe(state);
    const mayControl = view.getByRole('link', { name: /control|watch/i });
    await expect.poll(() => mayControl.count()).toBe(state === 'Watching' ? 0 : 1);
  }
  await cardOf(page, 'scrapers', 'watched').getByText('2 connections').waitFor();
  await api.release(session);
});

it('links to the replay as soon as the recording starts, also from the ended lease', async () => {
  const session = await api.lease({ name: 'recorded' }, 'scrapers');
  const page = await person.open(api.pool.dashboardUrl);
  const rows = page.getByRole('list', { name: 'Replays' }).getByRole('listitem');
  const row = rows.filter({ hasText: 'recorded' });
  await new Replays(api).record(session, () => row.getByText('Recording').waitFor());
  await row.getByText(/^(Ready|No video)$/).waitFor();
  await api.release(session);
  const names = ['Open the replay of recorded', 'Open the replay of the ended lease recorded'];
  const links = names.map((name) => page.getByRole('link', { name }));
  // The list of ended leases moves the other lists.
  for (const link of links) await link.waitFor();
  for (const link of links) {
    const opened = page.context().waitForEvent('page');
    await link.click();
    await expect.poll(async () => (await opened).title()).toContain('recorded');
  }
});

it('shows when its connection is lost', async () => {
  const gone = await startApi();
  const page = await person.open(gone.pool.dashboardUrl);
  await expect.poll(() => page.getByRole('status').textContent()).toBe('Live');
  await gone.pool.close();
  await expect.poll(() => page.getByRole('status').textContent()).toBe('Not connected');
  await page.close();
});

const ENDS = [
  {
    text: 'Release',
    label: 'Release one',
    consequence: /stays in the pool/,
    name: 'one',
    outcome: 'Released',
  },
  {
    text: 'Destroy browser',
    label: 'Destroy browser of two',
    consequence: /ends with its pages and data/,
    name: 'two',
    outcome: 'Destroyed',
  },
] as const;

/** The colours of a button. */
async function colourOf(button: Locator): Promise<string> {
  return await button.evaluate((element) => {
    const { color, backgroundColor } = getComputedStyle(element);
    return `${color} on ${backgroundColor}`;
  });
}

/** The card of a leased browser. */
function cardOf(page: Page, pool: string, name: string) {
  const cards = page.getByRole('list', { name: `Browsers of ${pool}` }).getByRole('listitem');
  return cards.filter({ has: page.getByText(name, { exact: true }) });
}
