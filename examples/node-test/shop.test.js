import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useLeasedBrowser } from './leased-browser.js';

const lease = useLeasedBrowser('default');

test('the shop has a name', async () => {
  await lease.page.goto('data:text/html,<title>Shop</title><button>Buy</button>');
  assert.equal(await lease.page.title(), 'Shop');
});

test('the shop sells flowers', async () => {
  assert.equal(await lease.page.getByText('Flowers').count(), 1);
});
