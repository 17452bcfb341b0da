import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { withPooledBrowser } from '../../src/playwright.js';
import { useLocalPool } from '../support/local.js';
import { DRIVERS } from '../support/drivers.js';

const used = useLocalPool();

/** What a lease of the only browser of the pool finds. */
async function find() {
  const { value } = await withPooledBrowser(used.pool, async ({ page, context }) => {
    await context.route('**/*', (route) => route.fulfill({ contentType: 'text/html', body: '<p>site</p>' }));
    const url = page.url();
    await page.goto('https://site.example/');
    const stored = await page.evaluate(async () => ({
      name: window.name,
      local: localStorage.length,
      session: sessionStorage.length,
      databases: (await indexedDB.databases()).length,
      caches: (await caches.keys()).length,
      permission: (await navigator.permissions.query({ name: 'geolocation' })).state,
    }));
    return { url, pages: context.pages().length, cookies: (await context.cookies()).length, ...stored };
  });
  return value;
}

const NOTHING = {
  url: 'about:blank',
  pages: 1,
  cookies: 0,
  name: '',
  local: 0,
  session: 0,
  databases: 0,
  caches: 0,
  permission: 'prompt',
};

async function leaveEverything(page: Page): Promise<void> {
  const context = page.context();
  await context.route('**/*', (route) =>
    route.fulfill({
      contentType: 'text/html',
      body: '<p>site</p>',
      headers: { 'set-cookie': 'hidden=1; HttpOnly; Max-Age=1000' },
    }),
  );
  await context.grantPermissions(['geolocation']);
  await page.goto('https://site.example/');
  await page.evaluate(async () => {
    window.name = 'left';
    document.cookie = 'shown=1; max-age=1000';
    localStorage.setItem('left', '1');
    sessionStorage.setItem('left', '1');
    await new Promise((resolve) => (indexedDB.open('left').onsuccess = resolve));
    await caches.open('left');
    window.addEventListener('beforeunload', (event) => event.preventDefault());
  });
  const other = await context.newPage();
  // The dialog stays open.
  other.on('dialog', () => {});
  await other.evaluate(() => void setTimeout(() => alert('left')));
}

it('reuses a browser in which the next lease finds nothing of the one before', async () => {
  const run = await withPooledBrowser(used.pool, ({ page }) => leaveEverything(page));
  expect(run).toMatchObject({ released: 'reused', cleanupErrors: [] });
  expect(await find()).toEqual(NOTHING);
  expect(used.local.stats()).toMatchObject({ leased: 0, destroyed: 0 });
});

it("keeps the browser as it is with release: 'reuse', and its own context with context: 'new'", async () => {
  await withPooledBrowser(used.pool, ({ page }) => leaveEverything(page), { release: 'reuse' });
  const { value } = await withPooledBrowser(
    used.pool,
    ({ page, browser }) => [page, browser.contexts()[0]!] as const,
    {
      context: 'new',
      release: 'reuse',
    },
  );
  expect(value).toHaveLength(2);
  const isolated = await withPooledBrowser(
    used.pool,
    async ({ browser }) => (await browser.contexts()[0]!.cookies()).length,
    {
      context: 'new',
    },
  );
  expect(isolated).toMatchObject({ value: 2, released: 'reused' });
  // The lease before left the own context untouched; this one uses and cleans it.
  expect(await find()).toMatchObject({ cookies: 2 });
  expect(await find()).toEqual(NOTHING);
});

it.each(DRIVERS.map((driver) => [driver.name, driver] as const))(
  'cleans the browser after a lease with %s',
  async (_name, driver) => {
    const lease = await driver.lease(used.pool);
    await lease.page.goto('data:text/html,<title>left</title>');
    expect(await lease.release()).toMatchObject({ released: 'reused' });
    expect(await find()).toEqual(NOTHING);
  },
);
