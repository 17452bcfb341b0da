/** Leases browsers from a service with an API of its own, and checks its adapter. */
import { BrowserPool } from 'pooled-browser';
import { withPooledBrowser } from 'pooled-browser/playwright';
import { LEASE_ID, serviceFaults } from 'pooled-browser/services/conformance';
import { rentals } from './rentals.js';
import { startRentals } from './server.js';

const key = 'a-key-of-this-example';
const response = {
  rental: { number: '7', socket: 'wss://rentals.example.com/7?jwt=a-secret', reference: LEASE_ID },
};
const rented = { rentals: [response.rental, { number: '8', reference: 'of somebody else' }] };
const faults = serviceFaults(rentals, {
  response,
  id: '7',
  required: ['rental', 'rental.number', 'rental.socket'],
  secrets: ['a-secret'],
  found: rented,
  sessions: rented,
  errors: [{ status: 402, body: { error: { message: 'No credit is left' } }, says: 'No credit is left' }],
});
console.log(`Faults of the adapter: ${faults.length}`);

await using server = await startRentals(key);
await using pool = new BrowserPool('any', { service: rentals, baseUrl: server.baseUrl, token: key });
const { value, released } = await withPooledBrowser(pool, async ({ page, session }) => {
  await page.goto('data:text/html,<title>Rented</title>');
  return `${await page.title()}: a rental with a ${typeof session.number} as its number`;
});
console.log(value);
console.log(`The browser was ${released}.`);
