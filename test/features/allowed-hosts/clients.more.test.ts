import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { chromium } from 'playwright-core';
import puppeteerCore from 'puppeteer-core';
import { expect, it } from 'vitest';
import { serveProxy, type ProxyEvent } from '../../../src/index.js';
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

const messageOf = (error: unknown) => String(error);

/** What programs behind a proxy read when they open an address that they may not. */
const READERS: Record<string, (proxy: string, url: string) => Promise<string>> = {
  Playwright: async (proxy, url) => {
    const browser = await chromium.connectOverCDP(proxy);
    const [page] = browser.contexts()[0]!.pages();
    const failed = page!.waitForEvent('requestfailed');
    const read = await page!.goto(url).then(() => '', messageOf);
    expect((await failed).failure()?.errorText).toContain('The browser may reach only allowedHosts');
    await browser.close();
    return read;
  },
  "Playwright's own protocol": async (proxy, url) => {
    const browser = await chromium.connect(`${proxy.replace('http', 'ws')}/playwright`);
    const page = await browser.newPage();
    const read = await page.goto(url).then(() => '', messageOf);
    await browser.close();
    return read;
  },
  Puppeteer: async (proxy, url) => {
    const browser = await puppeteerCore.connect({ browserWSEndpoint: proxy.replace('http', 'ws') });
    const page = await browser.newPage();
    const read = await page.goto(url).then(() => '', messageOf);
    await browser.disconnect();
    return read;
  },
  '@playwright/mcp': (proxy, url) => {
    const program = new URL('cli.js', import.meta.resolve('@playwright/mcp'));
    return callMcp(program, ['--cdp-endpoint', proxy], { name: 'browser_navigate', arguments: { url } });
  },
  'chrome-devtools-mcp': (proxy, url) => {
    const path = '../../../node_modules/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js';
    const how = ['--wsEndpoint', proxy.replace('http', 'ws'), '--no-usage-statistics'];
    return callMcp(new URL(path, import.meta.url), how, { name: 'new_page', arguments: { url } });
  },
};

/** Calls a tool of an MCP server, and returns its text. */
async function callMcp(
  program: URL,
  how: string[],
  tool: { name: string; arguments: Record<string, unknown> },
): Promise<string> {
  const args = [fileURLToPath(program), ...how];
  // Some servers write files to their working folder.
  const cwd = await mkdtemp(join(tmpdir(), 'mcp-'));
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(new StdioClientTransport({ command: process.execPath, args, cwd, stderr: 'ignore' }));
  try {
    return JSON.stringify((await client.callTool(tool)).content);
  } finally {
    await client.close();
  }
}

it.each(Object.entries(READERS))(
  '%s reads why a host is refused, and the proxy reports it with the session',
  async (_name, read) => {
    const events: ProxyEvent[] = [];
    const hosts = allowedHosts();
    await using proxy = await serveProxy(used.pool, {
      allowedHosts: hosts,
      onClient: (event) => events.push(event),
    });
    const text = await read(proxy.url, 'http://user:secret@a.other.test:81/');
    expect(text).toContain(
      `net::ERR_PROXY_CONNECTION_FAILED (The browser may reach only allowedHosts: '${hosts}'. ` +
        'To allow a.other.test:81, add it to the option.)',
    );
    const leased = () => events.find(({ type }) => type === 'leased');
    const refused = () => events.filter(({ type }) => type === 'request-refused');
    await expect.poll(() => refused().length).toBe(1);
    expect(refused()[0]).toEqual({
      ...leased(),
      type: 'request-refused',
      host: 'a.other.test:81',
      waited: undefined,
    });
  },
);
