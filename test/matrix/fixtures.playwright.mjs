import { expect, test } from 'pooled-browser/playwright-test';

test('has a page', async ({ page }) => {
  await page.goto('data:text/html,<title>fixture</title>');
  expect(await page.title()).toBe('fixture');
});
