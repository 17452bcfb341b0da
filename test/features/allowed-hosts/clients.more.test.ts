import puppeteerCore from 'puppeteer-core';
import { expect, it } from 'vitest';
import { serveProxy } from '../../../src/index.js';
import * as playwright from '../../../src/playwright.js';
import * as puppeteer from '../../../src/puppeteer.js';
import { startClient } from '../../cli/support.js';
import { OTHER_HOSTS, useJudges } from '../../support/host-judges.js';
import { useLocalPool } from '../../support/local.js';

const used = useLocalPool({ args: [OTHER_HOSTS], pools: [{ name: 'test', size: 1, timeoutSeconds: 300 }] });
const { site, allowedHosts, loadAll, reached } = useJudges();

interface AnyPage {
  goto(url: string): Promise<unknown>;
  title(): Promise<string>;
  evaluate(script: string): Promise<unknown>;
}
type Use = (page: AnyPage) => Promise<void>;

/** Further clients that use the limit in their own way. */
const CLIENTS: Record<string, (use: Use, allowedHosts: string) => Promise<unknown>> = {
  'a new context of Playwright': (use, allowedHosts) =>
    playwright.withPooledBrowser(used.pool, ({ page }) => use(page), { allowedHosts, context: 'new' }),
  'a context of Puppeteer with a proxy and a list of its own': (use, allowedHosts) =>
    puppeteer.withPooledBrowser(
      used.pool,
      async ({ browser }) => {
        const context = await browser.createBrowserContext({
          proxyServer: 'direct://',
          proxyBypassList: ['*'],
        });
        await use(await context.newPage());
      },
      { allowedHosts },
    ),
  'a named browser of the proxy': async (use, allowedHosts) => {
    await using proxy = await serveProxy(used.pool, { allowedHosts });
    const browserWSEndpoint = `${proxy.url.replace('http', 'ws')}/name`;
    const browser = await puppeteerCore.connect({ browserWSEndpoint });
    await use(await browser.newPage());
    await browser.disconnect();
  },
  'a task of a job': async (use, allowedHosts) => {
    const task = ({ page }: { page: AnyPage }) => use(page);
    for await (const outcome of playwright.mapPooledBrowsers(used.pool, [1], task, { allowedHosts }))
      if (outcome.status === 'rejected') throw outcome.reason;
  },
};

it.each(Object.entries(CLIENTS))(
  '%s: no kind of load reaches a host that is not allowed',
  async (_name, client) => {
    let title: string | undefined;
    await client(async (page) => {
      await page.goto(site.url);
      title = await page.title();
      await loadAll(page);
    }, allowedHosts());
    expect({ title, reached: reached() }).toEqual({ title: 'allowed', reached: [] });
  },
);

it('exec --allow-hosts gives its command addresses of this machine, whose browser reaches only these hosts', async () => {
  const script = `
    const { chromium } = require('playwright-core');
    (async () => {
      const { BROWSER_POOL_CDP_WS_URL: cdp, BROWSER_POOL_WEBDRIVER_WS_URL: bidi } = process.env;
      const browser = await chromium.connectOverCDP(cdp);
      const page = browser.contexts()[0].pages()[0];
      await page.goto('${site.url}');
      const failed = await page.goto('http://a.other.test:81/').catch((error) => error.message.split('\\n')[0]);
      console.log(JSON.stringify({ title: await page.title(), failed, bidi, host: new URL(cdp).hostname, path: new URL(cdp).search }));
      await browser.close();
    })();`;
  const args = ['exec', 'test', '--allow-hosts', allowedHosts(), '--', 'node', '-e', script];
  const { code, stdout, stderr } = await startClient(args, used.local).ended;
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: 'pooled-browser: The browser did not load from a.other.test:81, which is not allowed.\n',
  });
  expect(JSON.parse(stdout)).toEqual({
    title: '',
    failed: expect.stringContaining('ERR_PROXY_CONNECTION_FAILED'),
    host: '127.0.0.1',
    path: '',
  });
  expect(reached()).toEqual([]);
});
