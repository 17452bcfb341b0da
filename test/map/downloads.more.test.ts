import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page as PlaywrightPage } from 'playwright-core';
import type { Page as PuppeteerPage } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BrowserPool, Isolation, Outcomes } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { useLocalPool } from '../support/local.js';
import { valuesOf } from './support.js';

type Step = (page: PlaywrightPage | PuppeteerPage) => Promise<unknown>;

interface Driver {
  name: string;
  map(pool: BrowserPool, steps: Step[], isolation: Isolation): Outcomes<Step, unknown>;
  /** Collects the download events of the automation library. */
  listen(page: PlaywrightPage | PuppeteerPage): Promise<string[]>;
}

const onOnePage = { concurrency: 1, ordered: true, taskTimeout: 240_000 } as const;

const PLAYWRIGHT: Driver = {
  name: 'Playwright',
  map: (pool, steps, isolation) =>
    playwright.mapPooledBrowsers(pool, steps, ({ input, page }) => input(page), { ...onOnePage, isolation }),
  listen: async (page) => {
    const seen: string[] = [];
    (page as PlaywrightPage).on('download', (download) => void seen.push(download.url()));
    return seen;
  },
};

/** Puppeteer has no API for downloads, and the browser refuses downloads by default. */
const PUPPETEER: Driver = {
  name: 'Puppeteer',
  map: (pool, steps, isolation) =>
    puppeteer.mapPooledBrowsers(pool, steps, ({ input, page }) => input(page), { ...onOnePage, isolation }),
  listen: async (anyPage) => {
    const page = anyPage as PuppeteerPage;
    const seen: string[] = [];
    const cdp = await page.createCDPSession();
    cdp.on('Browser.downloadWillBegin', ({ url }) => void seen.push(url));
    cdp.on('Browser.downloadProgress', ({ state }) => void seen.push(state));
    const { id } = page.browserContext();
    await cdp.send('Browser.setDownloadBehavior', {
      behavior: 'allow',
      downloadPath: process.env['TMPDIR']!,
      eventsEnabled: true,
      ...(id !== undefined && { browserContextId: id }),
    });
    return seen;
  },
};

/** The responses whose files are never complete. */
const running = new Set<ServerResponse>();
const answerLate = (response: ServerResponse) => {
  const disposition = 'attachment; filename=file.bin';
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-disposition': disposition,
  });
  response.write('x'.repeat(1000));
};
const LINKS = '<a id=file href=/file download>file</a><a id=late href=/late download>late</a>';
const server = createServer(({ url }, response) => {
  if (url === '/file' || url === '/late') {
    running.add(response);
    response.once('close', () => running.delete(response));
    if (url === '/file') answerLate(response);
  } else response.writeHead(200, { 'content-type': 'text/html' }).end(LINKS);
});
let origin: string;

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterEach(() => server.closeAllConnections());
afterAll(() => once(server.close(), 'close'));

describe.each([PLAYWRIGHT, PUPPETEER])('$name', ({ map, listen }) => {
  const used = useLocalPool();

  const results = (isolation: Isolation, ...steps: Step[]): Promise<unknown[]> =>
    valuesOf(map(used.pool, steps, isolation));

  const begin: Step = async (page) => {
    const seen = await listen(page);
    await page.goto(origin);
    await page.click('#file');
    await expect.poll(() => seen).toContain(`${origin}file`);
    return running.size;
  };

  it.each(['context', 'storage'] as const)(
    '%s: a download of the previous task is cancelled, and the next task gets no event of it',
    async (isolation) => {
      const look: Step = async (page) => {
        const seen = await listen(page);
        await page.goto(origin);
        await expect.poll(() => running.size).toBe(0);
        return seen;
      };
      expect(await results(isolation, begin, look)).toEqual([1, []]);
    },
  );

  it('none: a download of the previous task continues', async () => {
    const look: Step = async (page) => {
      await page.goto(origin);
      await sleep(300);
      return running.size;
    };
    expect(await results('none', begin, look)).toEqual([1, 1]);
  });

  it.each(['context', 'storage'] as const)(
    '%s: a download that the server has not answered yet does not reach the next task',
    async (isolation) => {
      const click: Step = async (page) => {
        await listen(page);
        await page.goto(origin);
        await page.click('#late');
        await expect.poll(() => running.size).toBe(1);
      };
      const look: Step = async (page) => {
        const seen = await listen(page);
        await page.goto(origin);
        running.forEach(answerLate);
        await sleep(500);
        return seen;
      };
      expect((await results(isolation, click, look))[1]).toEqual([]);
    },
  );
});
