// Leases a browser, and tells each step and how it ended. Run, and frozen, by the tests beside this folder.
import { BrowserPool, withPooledBrowser } from '../../../dist/index.js';

const connector = {
  library: 'plain',
  refusal: () => undefined,
  load: async () => {},
  connect: async ({ socket }) => ({
    handles: {},
    isConnected: () => true,
    cleanup: async () => {},
    disconnect: async () => socket.close('closed-by-us'),
  }),
};

const tell = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const pool = new BrowserPool('test');
// Shorter than the freeze where it must not count: nothing of the machine's sleep is the service's fault.
const options = { connector, replays: 'off', pollTimeout: 1000, onEvent: ({ type }) => tell({ type }) };
// Asks the parent whether the browser may go.
const callback = () => new Promise((resolve) => process.stdin.once('data', () => resolve('value')));
const { value, released, acquireAttempts } = await withPooledBrowser(pool, callback, options);
await pool.close();
tell({ value, released, acquireAttempts });
process.stdin.destroy();
