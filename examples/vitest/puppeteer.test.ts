import { expect } from 'vitest';
import { leaseBrowser } from 'pooled-browser/puppeteer';
import { createTest } from 'pooled-browser/vitest';

const test = createTest(leaseBrowser);

test('drives the leased browser with Puppeteer', async ({ page }) => {
  await page.goto('data:text/html,<title>Hello</title>');
  expect(await page.title()).toBe('Hello');
});
