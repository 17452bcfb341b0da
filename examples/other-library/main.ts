/** Drives a leased browser with chrome-remote-interface, through a custom connector. */
import { BrowserPool, withPooledBrowser } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import { chromeRemoteInterface } from './connector.js';

const url = process.argv[2] ?? 'data:text/html,<title>Hello</title>';

// The service that the environment names, or else a browser of this machine.
await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();
await using pool = new BrowserPool('default', { baseUrl: local?.baseUrl, token: local?.token });

const { value, released } = await withPooledBrowser(
  pool,
  async ({ client, sessionId }) => {
    await client.Page.enable(sessionId);
    const loaded = new Promise((resolve) => client.on(`Page.loadEventFired.${sessionId}`, resolve));
    await client.Page.navigate({ url }, sessionId);
    await loaded;
    const { result } = await client.Runtime.evaluate({ expression: 'document.title' }, sessionId);
    return String(result.value);
  },
  { connector: chromeRemoteInterface },
);

console.log(`chrome-remote-interface read: ${value}`);
console.log(`The browser was ${released}.`);
