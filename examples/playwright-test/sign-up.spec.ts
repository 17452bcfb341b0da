import { expect, test } from 'pooled-browser/playwright-test';

const FORM =
  '<form onsubmit="document.title = `Welcome, ${who.value}`; return false"><input id="who"></form>';

test('greets a new user', async ({ page }) => {
  await page.setContent(FORM);
  await page.locator('#who').fill('Ada');
  await page.locator('#who').press('Enter');
  await expect(page).toHaveTitle('Welcome, Ada');
});

test('starts without data: each test has a fresh context', async ({ context, page }) => {
  expect(await context.cookies()).toEqual([]);
  expect(page.url()).toBe('about:blank');
});

test('has the leased session', async ({ session }) => {
  expect(session.session_id).not.toBe('');
});
