import { expect, test } from 'pooled-browser/playwright-test';

test('adds to the cart of the app on this machine', async ({ page }) => {
  await page.goto('/');
  await page.getByRole('button', { name: 'Add to cart' }).click();
  await expect(page.getByText('In the cart: 1')).toBeVisible();
});

test('is connected to the live reload of the development server', async ({ page }) => {
  const connected = page.waitForEvent('console', (message) => message.text().includes('[vite] connected.'));
  await page.goto('/');
  await connected;
});
