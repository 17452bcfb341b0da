import { test } from 'pooled-browser/vitest';

test('passes', async ({ page, session, expect }) => {
  await page.goto('data:text/html,<title>fixture</title>');
  expect(await page.title()).toBe('fixture');
  expect(session.session_id).not.toBe('');
});

test('fails', async ({ page, expect }) => {
  expect(await page.title()).toBe('another');
});
