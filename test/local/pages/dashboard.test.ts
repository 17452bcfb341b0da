import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { startApi } from '../support.js';
import { faults, record, usePerson } from './support.js';

const api = await startApi({
  pools: [{ name: 'tests', size: 2 }, { name: 'scrapers' }],
  quirks: { liveViewsHeadless: true },
});
const person = usePerson();

it('shows a lease with its name and tags until it ends, and waiting requests', async () => {
  const page = await person.open(api.pool.dashboardUrl);
  const tests = page.getByRole('region', { name: 'tests' }).first();
  await tests.getByText('0 of 2 leased').waitFor();
  const session = await api.lease({ name: 'cart.spec', tags: { worker: '3' } }, 'tests');
  const row = page.getByRole('row', { name: /cart\.spec/ });
  await row.getByText('leased').waitFor();
  await row.getByText('worker=3').waitFor();
  await row.getByText(session.session_id.slice(0, 8)).waitFor();
  const other = await api.lease({}, 'tests');
  const waits = api.acquire({ name: 'late', acquire_timeout_seconds: 60 }, 'tests');
  await page.getByRole('row', { name: /waiting.*late/ }).waitFor();
  await api.release(session);
  await page.getByRole('row', { name: /leased.*late/ }).waitFor();
  await expect.poll(() => row.count()).toBe(0);
  await waits;
  await Promise.all([api.release(other), api.release(session)]);
  await tests.getByText('0 of 2 leased').waitFor();
  expect(faults(page)).toEqual([]);
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
  await page
    .getByRole('row', { name: /watched/ })
    .getByRole('cell', { name: '2', exact: true })
    .waitFor();
  await api.release(session);
});

it('links to the replay as soon as the recording starts', async () => {
  const session = await api.lease({ name: 'recorded' }, 'scrapers');
  const page = await person.open(api.pool.dashboardUrl);
  await record(api, session, async () => {
    await page.getByRole('row', { name: /Recording.*recorded/ }).waitFor();
  });
  await page.getByRole('row', { name: /(Ready|No video).*recorded/ }).waitFor();
  const opened = page.context().waitForEvent('page');
  await page.getByRole('link', { name: 'Open the replay of recorded' }).click();
  await expect.poll(async () => (await opened).title()).toContain('recorded');
  await api.release(session);
}, 90_000);

it('shows when its connection is lost', async () => {
  const gone = await startApi();
  const page = await person.open(gone.pool.dashboardUrl);
  await expect.poll(() => page.getByRole('status').textContent()).toBe('Live');
  await gone.pool.close();
  await expect.poll(() => page.getByRole('status').textContent()).toBe('Not connected');
  await page.close();
});

it('does not print its URL with the pool', () => {
  const { pool } = api;
  expect(pool.dashboardUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?jwt=/);
  for (const text of [inspect(pool, { depth: 9, showHidden: true }), JSON.stringify(pool)]) {
    expect(text).not.toContain('jwt=');
    expect(text).not.toContain(new URL(pool.dashboardUrl).searchParams.get('jwt'));
  }
});
