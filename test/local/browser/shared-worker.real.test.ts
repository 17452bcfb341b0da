import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { withPooledBrowser } from '../../../src/playwright.js';
import { useLocalPool } from '../../support/local.js';
import { useWholeBrowser } from '../../support/whole-browser.js';

useWholeBrowser();

const used = useLocalPool();

it('runs a shared worker of a data: URL', async () => {
  const server = createServer((_request, response) => response.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { value } = await withPooledBrowser(used.pool, async ({ page }) => {
    await page.goto(`http://127.0.0.1:${port}`);
    return page.evaluate(
      `new Promise((resolve) => {
        const worker = new SharedWorker('data:text/javascript,onconnect = ({ ports: [port] }) => port.postMessage(1)');
        worker.port.onmessage = ({ data }) => resolve(data);
        worker.onerror = () => resolve('failed');
      })`,
    );
  });
  server.closeAllConnections();
  server.close();
  expect(value).toBe(1);
});
