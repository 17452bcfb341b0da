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

test('remembers nobody: each test has a fresh context', async ({ context, page }) => {
  expect(await context.cookies()).toEqual([]);
  expect(page.url()).toBe('about:blank');
});

test('costs no browser without one of the fixtures', () => {
  expect(1 + 1).toBe(2);
});

describe('what leaves traces in the browser', () => {
  test.override({ pooledBrowser: { scope: 'test', release: 'destroy' } });

  test('has a browser of its own, which nobody gets after it', async ({ page, session }) => {
    expect(await page.title()).toBe('');
    expect(session.session_id).not.toBe('');
  });
});
