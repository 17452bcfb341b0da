import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import { BrowserPool } from '../../../src/index.js';
import { withPooledBrowser } from '../../../src/puppeteer.js';
import { cdp } from '../../../src/services.js';
import { startChromium } from '../../support/chromium.js';
import { useWholeBrowser } from '../../support/whole-browser.js';

// The headless shell has no such cache.
useWholeBrowser();

it('ends what a page had open when it comes back from the back-forward cache', async () => {
  const server = createServer(({ url }, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).write('<title>app</title>');
    if (url !== '/endless') response.end();
  });
  const sockets = new WebSocketServer({ server });
  await once(server.listen(0, 'localhost'), 'listening');
  onTestFinished(() => {
    sockets.close();
    server.closeAllConnections();
    server.close();
  });
  const app = `http://localhost:${(server.address() as AddressInfo).port}/`;
  await using browser = await startChromium();
  await using pool = new BrowserPool('mine', { service: cdp(`http://${new URL(browser.url).host}`) });
  const { value } = await withPooledBrowser(
    pool,
    async ({ page }) => {
      await page.goto(app);
      await page.evaluate(`(async () => {
        const seen = (globalThis.seen = []);
        addEventListener('pageshow', ({ persisted }) => seen.push('persisted: ' + persisted));
        const { body } = await fetch('/endless');
        body.pipeTo(new WritableStream()).catch(({ name }) => seen.push('fetch: ' + name));
        const socket = new WebSocket(location.href.replace('http', 'ws'));
        socket.onclose = ({ code }) => seen.push('WebSocket: ' + code);
        await new Promise((resolve) => (socket.onopen = resolve));
      })()`);
      await page.goto(app.replace('localhost', 'other.localhost'));
      await page.goBack();
      await page.waitForFunction('seen.length === 3', { timeout: 5000 }).catch(() => {});
      return (await page.evaluate('seen')) as string[];
    },
    { exposeNetwork: 'localhost' },
  );
  expect(value.sort()).toEqual(['WebSocket: 1006', 'fetch: TypeError', 'persisted: true']);
});
