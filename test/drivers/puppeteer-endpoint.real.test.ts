import { once } from 'node:events';
import puppeteer from 'puppeteer-core';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { withPooledBrowser } from '../../src/puppeteer.js';
import { useLocalPool } from '../support/local.js';

const used = useLocalPool();

it('browser.wsEndpoint() connects a second client to the leased browser until the lease ends', async () => {
  const { value, released } = await withPooledBrowser(used.pool, async ({ browser, page }) => {
    const url = browser.wsEndpoint();
    const second = await puppeteer.connect({ browserWSEndpoint: url });
    const [seen] = await second.pages();
    await seen!.goto('data:text/html,<title>second</title>');
    return { url, second, title: await page.title() };
  });
  // The rest of the URL is a random secret, and contains nothing of the session's URL.
  expect(value.url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
  expect(value.title).toBe('second');
  expect(released).toBe('reused');
  await expect.poll(() => value.second.connected).toBe(false);
  const late = new WebSocket(value.url);
  await expect(once(late, 'open')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});
