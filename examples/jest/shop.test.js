import { expect } from '@jest/globals';
import { useLeasedBrowser } from './leased-browser.js';

const testPage = useLeasedBrowser('default');

testPage('the shop has a name', async (page) => {
  await page.goto('data:text/html,<title>Shop</title><button>Buy</button>');
  expect(await page.title()).toBe('Shop');
});

testPage('the shop sells flowers', async (page) => {
  expect(await page.getByText('Flowers').count()).toBe(1);
});
