import { expectTypeOf } from 'expect-type';
import type * as pt from '@playwright/test';
import type * as pw from 'playwright-core';
import type * as pp from 'puppeteer-core';
import { it } from 'vitest';
import type { BrowserPool, BrowserSession, LeaseFacts } from '../../src/index.js';
import type * as playwrightTest from '../../src/playwright-test.js';
import type { leaseBrowser } from '../../src/puppeteer.js';
import type { SteelSession } from '../../src/services.js';
import type * as vitest from '../../src/vitest.js';

/** Checked by the compiler (`npm run types`), never called. */
function types(
  test: typeof vitest.test,
  puppeteer: typeof leaseBrowser,
  createTest: typeof vitest.createTest,
) {
  test('', ({ page, context, browser, session, handoff, extend }) => {
    expectTypeOf(handoff).toEqualTypeOf<LeaseFacts['handoff']>();
    expectTypeOf(extend).toEqualTypeOf<LeaseFacts['extend']>();
    expectTypeOf(page).toEqualTypeOf<pw.Page>();
    expectTypeOf(context).toEqualTypeOf<pw.BrowserContext>();
    expectTypeOf(browser).toEqualTypeOf<pw.Browser>();
    expectTypeOf(session).toEqualTypeOf<BrowserSession>();
  });
  // @ts-expect-error -- no such fixture
  test('', ({ pages }) => pages);
  test.override({
    pooledBrowser: { scope: 'test', pool: {} as BrowserPool, connectOptions: { slowMo: 10 } },
  });
  test.override({ pooledBrowser: { contextOptions: { locale: 'de-DE', storageState: 'state.json' } } });
  // @ts-expect-error -- no such option of a context
  test.override({ pooledBrowser: { contextOptions: { cookies: 1 } } });
  // @ts-expect-error -- no such scope
  test.override({ pooledBrowser: { scope: 'suite' } });
  // @ts-expect-error -- no option name: names must be unique
  test.override({ pooledBrowser: { name: 'mine' } });
  // @ts-expect-error -- Playwright does not support BiDi
  test.override({ pooledBrowser: { protocol: 'bidi' } });

  const ofPuppeteer = createTest(puppeteer);
  ofPuppeteer('', ({ page, context, browser }) => {
    expectTypeOf(page).toEqualTypeOf<pp.Page>();
    expectTypeOf(context).toEqualTypeOf<pp.BrowserContext>();
    expectTypeOf(browser).toEqualTypeOf<pp.Browser>();
  });
  createTest<typeof leaseBrowser, SteelSession>(puppeteer)('', ({ session }) => {
    expectTypeOf(session).toEqualTypeOf<SteelSession>();
  });
  ofPuppeteer.override({ pooledBrowser: { protocol: 'bidi', contextOptions: { userAgent: 'mine' } } });
}

function typesOfPlaywrightTest(
  test: typeof playwrightTest.test,
  createTest: typeof playwrightTest.createTest,
) {
  test('', ({ page, browser, session, handoff, extend }) => {
    expectTypeOf(handoff).toEqualTypeOf<LeaseFacts['handoff']>();
    expectTypeOf(extend).toEqualTypeOf<LeaseFacts['extend']>();
    expectTypeOf(page).toEqualTypeOf<pt.Page>();
    expectTypeOf(browser).toEqualTypeOf<pt.Browser>();
    expectTypeOf(session).toEqualTypeOf<BrowserSession>();
  });
  test.use({ pooledBrowser: { pool: 'scrapers', replays: 'off' } });
  // @ts-expect-error -- the contexts are those of Playwright Test: use: { locale }
  test.use({ pooledBrowser: { contextOptions: { locale: 'de-DE' } } });
  // @ts-expect-error -- no such option
  test.use({ pooledBrowser: { pol: 'scrapers' } });

  const ofSteel = createTest<SteelSession>();
  ofSteel('', ({ page, session }) => {
    expectTypeOf(page).toEqualTypeOf<pt.Page>();
    expectTypeOf(session).toEqualTypeOf<SteelSession>();
  });
  ofSteel.use({
    pooledBrowser: {
      pool: {} as BrowserPool<SteelSession>,
      release: ({ session }) => (expectTypeOf(session).toEqualTypeOf<SteelSession>(), 'reuse'),
    },
  });
  // @ts-expect-error -- a pool of another service
  test.use({ pooledBrowser: { pool: {} as BrowserPool<SteelSession> } });
}

it('the types of the fixtures and their options match each library', () => {
  expectTypeOf(types).toBeFunction();
  expectTypeOf(typesOfPlaywrightTest).toBeFunction();
});
