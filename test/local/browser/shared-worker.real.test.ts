import { expect, it } from 'vitest';
import { withPooledBrowser } from '../../../src/playwright.js';
import { useLocalPool } from '../../support/local.js';
import { Site } from '../../support/site.js';
import { useWholeBrowser } from '../../support/whole-browser.js';

useWholeBrowser();

const used = useLocalPool();

it('runs a shared worker of a data: URL', async () => {
  await using site = await Site.open((_request, response) => response.end());
  const { value } = await withPooledBrowser(used.pool, async ({ page }) => {
    await page.goto(site.url);
    return page.evaluate(
      `new Promise((resolve) => {
        const worker = new SharedWorker('data:text/javascript,onconnect = ({ ports: [port] }) => port.postMessage(1)');
        worker.port.onmessage = ({ data }) => resolve(data);
        worker.onerror = () => resolve('failed');
      })`,
    );
  });
  expect(value).toBe(1);
});
