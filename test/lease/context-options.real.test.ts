import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { InvalidOptionError, runOf } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { rejection } from '../pool/support.js';
import { useLocalPool } from '../support/local.js';
import { useSite } from '../support/site.js';

const used = useLocalPool();

/** Answers with the headers of the request. */
const site = useSite(({ headers }, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end(`<pre>${JSON.stringify(headers)}</pre>`);
});
/** What a page shows of the options of its context. */
const SEEN = `JSON.stringify({
  ...JSON.parse(document.body.innerText),
  language: navigator.language,
  timeZone: new Intl.DateTimeFormat().resolvedOptions().timeZone,
  width: innerWidth,
})`;

interface AnyPage {
  goto(url: string): Promise<unknown>;
  evaluate(script: string): Promise<unknown>;
}

async function seenIn(page: AnyPage): Promise<Record<string, unknown>> {
  await page.goto(site.url);
  return JSON.parse((await page.evaluate(SEEN)) as string) as Record<string, unknown>;
}

const COOKIE = { name: 'user', value: 'ada', domain: '127.0.0.1', path: '/' };
const COMMON = {
  userAgent: 'mine',
  viewport: { width: 321, height: 500 },
  extraHTTPHeaders: { 'x-mine': 'yes' },
  timezoneId: 'Asia/Tokyo',
};
const SHOWN = {
  'user-agent': 'mine',
  'x-mine': 'yes',
  cookie: 'user=ada',
  timeZone: 'Asia/Tokyo',
  width: 321,
};

describe('Playwright', () => {
  it('opens a new context with every option, writes its HAR, and reuses the browser', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'har-')), 'requests.har');
    const cookie = { ...COOKIE, expires: -1, httpOnly: false, secure: false, sameSite: 'Lax' } as const;
    const storageState = {
      cookies: [cookie],
      origins: [{ origin: site.url, localStorage: [{ name: 'draft', value: 'kept' }] }],
    };
    const contextOptions = { ...COMMON, locale: 'de-DE', storageState, recordHar: { path } };
    const { value, released } = await playwright.withPooledBrowser(
      used.pool,
      async ({ page, browser, context }) => {
        expect(browser.contexts()[0]).not.toBe(context);
        return [
          await seenIn(page),
          await page.evaluate('localStorage.draft'),
          await seenIn(await context.newPage()),
        ];
      },
      { contextOptions },
    );
    expect(value).toMatchObject([{ ...SHOWN, language: 'de-DE' }, 'kept', SHOWN]);
    expect(released).toBe('reused');
    expect(readFileSync(path, 'utf8')).toContain(site.url);
    const next = await playwright.withPooledBrowser(used.pool, ({ page }) => seenIn(page));
    expect(next.value).not.toMatchObject({ cookie: 'user=ada' });
  });

  type Callback = (handles: playwright.PlaywrightHandles & { abort: () => void }) => unknown;
  const hang = () => new Promise<never>(() => {});
  it.each<[string, Callback, playwright.PlaywrightRunOptions?]>([
    ['the callback times out', hang, { timeout: 2000 }],
    ['the call is aborted', ({ abort }) => (abort(), hang())],
    ['the browser is left', () => {}, { release: 'leave' }],
    ['the callback does not wait for the end of its context', ({ context }) => void context.close()],
  ])('writes the HAR of a context when %s', async (_, callback, options) => {
    const path = join(mkdtempSync(join(tmpdir(), 'har-')), 'requests.har');
    const controller = new AbortController();
    const run = playwright.withPooledBrowser(
      used.pool,
      async (handles) => {
        await handles.page.goto(site.url);
        await callback({ ...handles, abort: () => controller.abort() });
      },
      { contextOptions: { recordHar: { path } }, signal: controller.signal, ...options },
    );
    const summary = await run.catch((error: unknown) => {
      const failed = runOf(error);
      if (!failed) throw error;
      return failed;
    });
    if (options?.release === 'leave') await used.pool.release((await run).session.session_id);
    expect(summary.cleanupErrors).toEqual([]);
    expect(readFileSync(path, 'utf8')).toContain('"entries":');
  });

  it('writes the HAR of a context before a reconnect', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'har-')), 'requests.har');
    await using lease = await playwright.leaseBrowser(used.pool);
    const page = await lease.browser.newPage({ recordHar: { path } });
    await page.goto(site.url);
    await lease.reconnect();
    expect(readFileSync(path, 'utf8')).toContain(site.url);
  });

  it('reports a HAR that is not written, because the context of the browser itself is not closed', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'har-')), 'requests.har');
    const { cleanupErrors } = await playwright.withPooledBrowser(used.pool, ({ page }) =>
      page.routeFromHAR(path, { update: true }),
    );
    expect(cleanupErrors).toMatchObject([
      { name: 'CleanupError', message: expect.stringContaining(path) as string },
    ]);
  });

  it('keeps the size of the window without a viewport, and accepts options that need one', async () => {
    const width = async (contextOptions: playwright.PlaywrightRunOptions['contextOptions']) =>
      (
        await playwright.withPooledBrowser(used.pool, ({ page }) => page.evaluate('innerWidth'), {
          contextOptions,
        })
      ).value;
    const own = await playwright.withPooledBrowser(used.pool, ({ page }) => page.evaluate('innerWidth'));
    expect(await width({ locale: 'de-DE' })).toBe(own.value);
    expect(await width({ deviceScaleFactor: 2 })).toBe(1280);
  });
});

describe.each(['cdp', 'bidi'] as const)('Puppeteer over %s', (protocol) => {
  it('opens a new context, and applies the settings to each of its pages', async () => {
    const contextOptions = { ...COMMON, cookies: [COOKIE] };
    const { value, released } = await puppeteer.withPooledBrowser(
      used.pool,
      async ({ page, browser, context }) => {
        expect(browser.defaultBrowserContext()).not.toBe(context);
        return [await seenIn(page), await seenIn(await context.newPage())];
      },
      { protocol, contextOptions },
    );
    expect(value).toMatchObject([SHOWN, SHOWN]);
    expect(released).toBe('reused');
  });

  it('applies the settings to a pop-up', async () => {
    const { value } = await puppeteer.withPooledBrowser(
      used.pool,
      async ({ page }) => {
        await page.goto(site.url);
        const [popup] = await Promise.all([
          new Promise<puppeteer.PuppeteerHandles['page'] | null>(
            (resolve) => void page.once('popup', resolve),
          ),
          page.evaluate('void open("about:blank")'),
        ]);
        await expect.poll(async () => popup!.evaluate('navigator.userAgent')).toBe('mine');
        return seenIn(popup!);
      },
      { protocol, contextOptions: COMMON },
    );
    expect(value).toMatchObject({ 'user-agent': 'mine', 'x-mine': 'yes', width: 321 });
  });
});

const LIBRARIES = [
  ['Playwright', playwright.withPooledBrowser as unknown as typeof puppeteer.withPooledBrowser],
  ['Puppeteer', puppeteer.withPooledBrowser],
] as const;

it('the pages load through the proxy of the context', async () => {
  const hostSeen = async ({ page }: { page: AnyPage }) => {
    await page.goto('http://shop.test/');
    return page.evaluate('JSON.parse(document.body.innerText).host');
  };
  const server = site.url;
  const runs = [
    await playwright.withPooledBrowser(used.pool, hostSeen, { contextOptions: { proxy: { server } } }),
    await puppeteer.withPooledBrowser(used.pool, hostSeen, { contextOptions: { proxyServer: server } }),
  ];
  expect(runs.map(({ value }) => value)).toEqual(['shop.test', 'shop.test']);
});

it.each(LIBRARIES)(
  '%s: a value that only the browser can refuse is an InvalidOptionError, after one lease',
  async (_, run) => {
    const before = used.local.stats().granted;
    const error = await rejection(run(used.pool, () => {}, { contextOptions: { timezoneId: 'No/Where' } }));
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error).toMatchObject({
      option: 'contextOptions',
      message: expect.stringContaining('No/Where') as string,
    });
    expect(used.local.stats().granted).toBe(before + 1);
    expect(runOf(error)).toMatchObject({ released: 'destroyed' });
  },
);
