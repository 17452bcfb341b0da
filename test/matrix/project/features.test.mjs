// What a lease can do besides its page, with the runtime that runs this file.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { BrowserPool } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import * as playwright from 'pooled-browser/playwright';
import * as puppeteer from 'pooled-browser/puppeteer';
import { HOME } from './run.mjs';

// A dependency of the package.
const { WebSocketServer } = createRequire(join(HOME, 'package.json'))('ws');
const folder = await mkdtemp(join(tmpdir(), 'features-'));
const local = await startLocalPool({ pools: [{ name: 'default', size: 1 }] });
const pool = new BrowserPool('default', { baseUrl: local.baseUrl, token: local.token });
const site = createServer((request, response) => {
  if (request.url === '/file') response.setHeader('content-disposition', 'attachment; filename=file.txt');
  response.setHeader('content-type', 'text/html');
  response.end(`<title>exposed</title>${request.url}`);
});
new WebSocketServer({ server: site }).on('connection', (socket) => {
  socket.on('message', (data) => socket.send(`echo ${data}`));
});
site.listen(0, '127.0.0.1');
await once(site, 'listening');
const { port } = site.address();
after(async () => {
  await pool.close();
  await local.close();
  site.closeAllConnections();
  site.close();
  await rm(folder, { recursive: true, force: true });
});

const ECHO = `new Promise((resolve, reject) => {
  const socket = new WebSocket('ws://localhost:${port}/');
  socket.onopen = () => socket.send('hello');
  socket.onmessage = ({ data }) => resolve(data);
  socket.onerror = () => reject(new Error('the WebSocket failed'));
})`;

for (const [name, { withPooledBrowser }] of Object.entries({ playwright, puppeteer })) {
  describe(name, () => {
    it('shows a site of this machine, with its WebSockets', async () => {
      const work = async ({ page }) => {
        await page.goto(`http://localhost:${port}/`);
        return [await page.title(), await page.evaluate(ECHO)];
      };
      const { value } = await withPooledBrowser(pool, work, { exposeNetwork: `localhost:${port}` });
      assert.deepEqual(value, ['exposed', 'echo hello']);
    });

    it('copies downloads', async () => {
      const downloads = join(folder, name);
      const work = async ({ page }) => {
        await page.goto(`http://127.0.0.1:${port}/`);
        await page.evaluate("location.href = '/file'");
        await new Promise((resolve) => setTimeout(resolve, 1000));
      };
      const run = await withPooledBrowser(pool, work, { downloads });
      assert.equal(run.downloads.length, 1);
      const [file] = await readdir(downloads);
      assert.match(await readFile(join(downloads, file), 'utf8'), /\/file$/);
    });

    it('leaves a screenshot and the console of a failed run', async () => {
      const artifacts = { folder: join(folder, `${name}-artifacts`) };
      const fail = async ({ page }) => {
        await page.evaluate('console.log("from the page")');
        throw new Error('mine');
      };
      await assert.rejects(withPooledBrowser(pool, fail, { artifacts }), { message: 'mine' });
      const [run] = await readdir(artifacts.folder);
      const files = await readdir(join(artifacts.folder, run));
      assert.deepEqual(files.toSorted(), ['console.jsonl', 'screenshot.png']);
    });

    it('records a replay', async () => {
      const work = async ({ page }) => {
        await page.goto(`http://127.0.0.1:${port}/`);
        await new Promise((resolve) => setTimeout(resolve, 1500));
      };
      const run = await withPooledBrowser(pool, work, { replays: 'record', replaysTimeout: 60_000 });
      assert.equal(run.replayStatus, 'ready');
      const path = join(folder, `${name}.webm`);
      await pool.downloadReplay(run.session.session_id, run.replays[0].replay_id, path);
      const video = await readFile(path);
      // The first bytes of WebM.
      assert.equal(video.toString('hex', 0, 4), '1a45dfa3');
    });
  });
}
