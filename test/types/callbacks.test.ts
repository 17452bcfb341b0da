import { expectTypeOf } from 'expect-type';
import type * as pw from 'playwright-core';
import type * as pp from 'puppeteer-core';
import { it } from 'vitest';
import { BrowserPool, withPooledBrowser, type BrowserSession, type Run } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { steel, type SteelSession } from '../../src/services.js';

/** Checked by the compiler (`npm run types`), never called. */
function types(pool: BrowserPool) {
  void playwright.withPooledBrowser(pool, ({ browser, context, page, session, signal }) => {
    expectTypeOf(browser).toEqualTypeOf<pw.Browser>();
    expectTypeOf(context).toEqualTypeOf<pw.BrowserContext>();
    expectTypeOf(page).toEqualTypeOf<pw.Page>();
    expectTypeOf(session).toEqualTypeOf<BrowserSession>();
    expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
  });
  void puppeteer.withPooledBrowser(pool, (lease) => {
    expectTypeOf(lease.browser).toEqualTypeOf<pp.Browser>();
    expectTypeOf(lease.page).toEqualTypeOf<pp.Page>();
    // @ts-expect-error -- a context only with context: 'new'
    void lease.context;
  });
  void puppeteer.withPooledBrowser(
    pool,
    ({ context, page }) => {
      expectTypeOf(context).toEqualTypeOf<pp.BrowserContext>();
      expectTypeOf(page).toEqualTypeOf<pp.Page>();
    },
    { context: 'new', protocol: 'bidi' },
  );
  void puppeteer.withPooledBrowser(
    pool,
    ({ context }) => expectTypeOf(context).toEqualTypeOf<pp.BrowserContext>(),
    { contextOptions: { userAgent: 'mine', proxyServer: 'http://127.0.0.1:8080' } },
  );
  expectTypeOf(puppeteer.leaseBrowser(pool, { contextOptions: {} })).resolves.toHaveProperty('context');
  void playwright.leaseBrowser(pool, { contextOptions: { locale: 'de-DE', storageState: 'state.json' } });
  // @ts-expect-error -- Playwright has no such option
  void playwright.leaseBrowser(pool, { contextOptions: { cookies: [] } });
  // @ts-expect-error -- Puppeteer has no such option
  void puppeteer.leaseBrowser(pool, { contextOptions: { locale: 'de-DE' } });
  // @ts-expect-error -- Puppeteer has no such option
  void puppeteer.withPooledBrowser(pool, () => {}, { contextOptions: { storageState: 'state.json' } });
  // @ts-expect-error -- Playwright does not support BiDi
  void playwright.withPooledBrowser(pool, () => {}, { protocol: 'bidi' });
  // @ts-expect-error -- also for leaseBrowser
  void playwright.leaseBrowser(pool, { protocol: 'bidi' });
  // @ts-expect-error -- an option that does not exist
  void playwright.withPooledBrowser(pool, () => {}, { acquireTimout: 1 });

  const ofSteel = new BrowserPool('', { service: steel() });
  void playwright.withPooledBrowser(
    ofSteel,
    ({ session }) => expectTypeOf(session).toEqualTypeOf<SteelSession>(),
    {
      release: ({ session }) => (expectTypeOf(session).toEqualTypeOf<SteelSession>(), 'reuse'),
      onEvent: (event) =>
        event.type === 'acquired' && expectTypeOf(event.session).toEqualTypeOf<SteelSession>(),
    },
  );
  const ofSteelToo = puppeteer.withPooledBrowser(ofSteel, () => 5);
  expectTypeOf(ofSteelToo).toEqualTypeOf<Promise<Run<number, SteelSession>>>();
  expectTypeOf(playwright.withPooledBrowser(pool, () => 5)).toEqualTypeOf<Promise<Run<number>>>();
  expectTypeOf(puppeteer.withPooledBrowser(pool, async ({ page }) => page.title())).toEqualTypeOf<
    Promise<Run<string>>
  >();
  expectTypeOf(playwright.leaseBrowser(pool)).resolves.toHaveProperty('page').toEqualTypeOf<pw.Page>();
  expectTypeOf(puppeteer.leaseBrowser(pool, { context: 'new' })).resolves.toHaveProperty('context');

  void withPooledBrowser(pool, ({ page }) => expectTypeOf(page).toEqualTypeOf<pw.Page>(), {
    connector: playwright.playwright(),
  });
  // @ts-expect-error -- the generic function needs a connector
  void withPooledBrowser(pool, () => {}, {});

  void playwright.withPooledBrowser(pool, () => {}, { connectOptions: { slowMo: 10, noDefaults: true } });
  void puppeteer.withPooledBrowser(pool, () => {}, { connectOptions: { slowMo: 10 } });
}

it('the types of callback, options and result match each library and protocol', () => {
  expectTypeOf(types).toBeFunction();
});
