import { test } from 'pooled-browser/vitest';

test('has a page', async ({ page, expect }) => {
  await page.goto('data:text/html,<title>fixture</title>');
  expect(await page.title()).toBe('fixture');
});
