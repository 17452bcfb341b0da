import { describe, expect } from 'vitest';
import { test } from 'pooled-browser/vitest';

const FORM =
  '<form onsubmit="document.title = `Welcome, ${who.value}`; return false"><input id="who"></form>';

test('greets a new user', async ({ page }) => {
  await page.setContent(FORM);
  await page.locator('#who').fill('Ada');
  await page.locator('#who').press('Enter');
  expect(await page.title()).toBe('Welcome, Ada');
});

test('starts without data: each test has a fresh context', async ({ context, page }) => {
  expect(await context.cookies()).toEqual([]);
  expect(page.url()).toBe('about:blank');
});

test('leases no browser without one of the fixtures', () => {
  expect(1 + 1).toBe(2);
});

describe('a test that changes the browser', () => {
  test.override({ pooledBrowser: { scope: 'test', release: 'destroy' } });

  test('has its own browser, which is destroyed afterwards', async ({ page, session }) => {
    expect(await page.title()).toBe('');
    expect(session.session_id).not.toBe('');
  });
});
