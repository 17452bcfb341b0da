/** Prints for each replacement of what Node sends with, how a lease ended: the title of its page, or the error. */
import http from 'node:http';
import net from 'node:net';
import { setupServer } from 'msw/node';
import { BrowserPool } from 'pooled-browser';
import { withPooledBrowser } from 'pooled-browser/playwright';
import { cdp } from 'pooled-browser/services';

const refuse = () => {
  throw new Error('replaced');
};

async function lease(what) {
  const pool = new BrowserPool('mine', { service: cdp(process.env.CDP_URL) });
  const run = withPooledBrowser(pool, async ({ page }) => {
    await page.goto('data:text/html,<title>Here</title>');
    return page.title();
  });
  const end = await run.then(
    ({ value, cleanupErrors }) => [value, ...cleanupErrors],
    (error) => error.message,
  );
  await pool.close();
  console.log(`${what}: ${String(end).replaceAll('\n', ' ')}`);
}

async function withReplaced(owner, name, what) {
  const before = owner[name];
  owner[name] = refuse;
  await lease(what);
  owner[name] = before;
}

function refuseOthers({ url }, { error }) {
  if (new URL(url).hostname !== '127.0.0.1') error();
}

for (const onUnhandledRequest of ['bypass', refuseOthers, 'error']) {
  const server = setupServer();
  server.listen({ onUnhandledRequest });
  await lease(`msw with ${onUnhandledRequest.name ?? onUnhandledRequest}`);
  server.close();
}
await withReplaced(globalThis, 'fetch', 'fetch');
await withReplaced(http, 'request', 'http.request');
await withReplaced(net, 'connect', 'net.connect');
