import { BrowserPool } from 'pooled-browser';
import { cdp } from 'pooled-browser/services';
import { test } from 'pooled-browser/vitest';
import { titleOf } from './lease.suite.mjs';

const pool = new BrowserPool('mine', { service: cdp(process.env.CDP_URL) });
test.override({ pooledBrowser: { pool, scope: 'file' } });
afterAll(() => pool.close());

test('gives a page of a leased browser', async ({ page }) => {
  expect(await titleOf({ page })).toBe('Here');
});
