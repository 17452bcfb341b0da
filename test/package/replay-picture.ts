/** `npx tsx test/package/replay-picture.ts`: writes `examples/replay.jpg`, the picture of a replay page in the README. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { BrowserPool, runOf } from 'pooled-browser';
import { findBrowser } from 'pooled-browser/local';
import { withPooledBrowser } from 'pooled-browser/playwright';

const SHOP = `<!doctype html><title>Tea shop</title><style>
  body { font: 18px/1.5 sans-serif; margin: 48px 64px; background: #f4f1ea; color: #20302c }
  main { display: grid; gap: 14px; max-width: 520px } input, button { font: inherit; padding: 10px 14px; border-radius: 8px }
  button { background: teal; color: white; border: 0 } output { padding: 12px; background: #ffd9d2; border-radius: 8px }
  output:empty { visibility: hidden }</style>
  <main><h1>Tea shop</h1><p>Two tins of Assam: 24.80</p><input id="email" placeholder="Email">
  <input id="password" type="password" placeholder="Password"><button id="order">Order</button><output id="answer"></output></main><script>
  document.getElementById('order').onclick = async () => {
    const { status } = await fetch('/orders', { method: 'POST' });
    document.getElementById('answer').value = 'The order could not be placed (' + status + ').';
  };</script>`;
const server = createServer(({ method }, response) => {
  response.writeHead(method === 'POST' ? 503 : 200, { 'content-type': 'text/html' }).end(SHOP);
});
await once(server.listen(0, '127.0.0.1'), 'listening');
const shop = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
const folder = mkdtempSync(join(tmpdir(), 'replay-picture-'));
const pool = new BrowserPool('checkout-tests', { baseUrl: 'local', local: { size: 1 } });
const error: unknown = await withPooledBrowser(
  pool,
  async ({ page }) => {
    await page.goto(shop);
    await page.fill('#email', 'ada@example.com');
    await page.fill('#password', 'does not appear');
    await page.click('#order');
    await page.getByText('Thank you').waitFor({ timeout: 1_500 });
  },
  {
    name: 'orders-two-tins',
    replays: 'record',
    replaysTimeout: 120_000,
    recording: { folder },
  },
).catch((reason: unknown) => reason);
const { moment } = runOf(error)!;
await using browser = await chromium.launch({ executablePath: await findBrowser() });
const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
await page.goto(moment!);
await page.locator('video').evaluate((video: HTMLVideoElement) => video.readyState > 1);
await page.waitForTimeout(1_000);
await page.screenshot({ path: 'examples/replay.jpg', quality: 70 });
await pool.close();
server.close();
rmSync(folder, { recursive: true });
