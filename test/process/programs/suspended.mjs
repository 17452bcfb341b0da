// Leases a browser, and reports each step and the outcome. The tests in the parent folder start and suspend it.
import { BrowserPool, withPooledBrowser } from '../../../dist/index.js';
import { connector } from './plain.mjs';

const tell = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const pool = new BrowserPool('test');
// Shorter than the suspension, which must not count: the service did not cause it.
const options = { connector, replays: 'off', pollTimeout: 1000, onEvent: ({ type }) => tell({ type }) };
// Waits until the parent allows the release.
const callback = () => new Promise((resolve) => process.stdin.once('data', () => resolve('value')));
const { value, released, acquireAttempts } = await withPooledBrowser(pool, callback, options);
await pool.close();
tell({ value, released, acquireAttempts });
process.stdin.destroy();
