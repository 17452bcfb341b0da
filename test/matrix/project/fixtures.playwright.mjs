import { expect, test } from 'pooled-browser/playwright-test';

// The pool takes longer to lease a browser than a test may take: the wait does not count. What follows may be slow.
test('passes', async ({ page, session }) => {
  test.setTimeout(60_000);
  await page.goto('data:text/html,<title>fixture</title>');
  await expect(page).toHaveTitle('fixture');
  expect(session.session_id).not.toBe('');
});

// The person takes longer than the test may take, which does not count either.
test('asks a person', async ({ page, handoff }) => {
  test.setTimeout(15_000);
  expect(await handoff({ message: 'Please look.' })).toEqual({ status: 'done', note: 'seen' });
  expect(await page.title()).toBe('');
});

test('fails', async ({ page }) => {
  test.setTimeout(60_000);
  await page.goto('data:text/html,<title>fixture</title>');
  expect(await page.title()).toBe('another');
});
