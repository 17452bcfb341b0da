import { expect, test } from '@playwright/test';
import { ObservedPages } from '../../../src/drivers/observed-pages.js';

for (const isNoted of [false, true])
  test(isNoted ? 'noted' : 'not noted', async ({ browser, context, page }) => {
    const onCall = ({ text }: { text: string }) => {
      console.log(text);
      return undefined;
    };
    const observed = new ObservedPages({ scope: 'browser', ...(isNoted && { onCall }) });
    observed.noteCalls('playwright', { browser, context, page });
    observed.learn(context, page);
    await page.setContent('<input id=email><p>Hello</p>');
    await test.step('Log in', async () => {
      await page.locator('#email').fill('me');
      await page.press('#email', 'Tab');
    });
    await expect(page.locator('#email')).toHaveValue('me');
    await expect(page.locator('p')).toContainText(['Hell']);
    await expect.poll(() => page.title()).toBe('');
    await expect(async () => page.locator('p').click()).toPass();
    await expect.soft(page.locator('p')).toHaveText('Bye', { timeout: 100 });
    await page.click('#none', { timeout: 100 });
  });
