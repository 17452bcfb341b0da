import { expectTypeOf } from 'expect-type';
import { it } from 'vitest';
import { workPooledBrowsers } from '../../src/bullmq.js';
import { BrowserPool, type Outcomes } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import {
  anchor,
  browserbase,
  browserless,
  steel,
  type AnchorSession,
  type BrowserbaseSession,
  type SteelSession,
} from '../../src/services.js';

/** Checked by the compiler (`npm run types`), never called. */
function types() {
  const pool = new BrowserPool('x', { service: browserbase({ projectId: 'p' }) });
  expectTypeOf(pool).toEqualTypeOf<BrowserPool<BrowserbaseSession>>();
  void playwright.withPooledBrowser(pool, ({ session }) => {
    expectTypeOf(session).toEqualTypeOf<BrowserbaseSession>();
    expectTypeOf(session.connectUrl).toBeString();
  });
  void playwright.leaseBrowser(new BrowserPool('x', { service: anchor() })).then(({ session }) => {
    expectTypeOf(session).toEqualTypeOf<AnchorSession>();
  });
  const outcomes = playwright.mapPooledBrowsers(pool, [1], ({ input, session }) => {
    expectTypeOf(session).toEqualTypeOf<BrowserbaseSession>();
    return String(input);
  });
  expectTypeOf(outcomes).toEqualTypeOf<Outcomes<number, string, BrowserbaseSession>>();
  void outcomes.next().then(({ value }) => {
    expectTypeOf(value!.session).toEqualTypeOf<BrowserbaseSession>();
    if (value!.status === 'fulfilled') expectTypeOf(value!.value).toBeString();
  });
  const connector = playwright.playwright();
  void workPooledBrowsers('queue', pool, ({ session }) => expectTypeOf(session.connectUrl).toBeString(), {
    connector,
  });
  expectTypeOf(
    new BrowserPool('x', { service: steel() }).acquire(),
  ).resolves.toEqualTypeOf<SteelSession | null>();
  // @ts-expect-error -- a region that the service does not have
  browserbase({ region: 'the-moon' });
  // @ts-expect-error -- the Session API needs a time to live
  browserless({ session: {} });
  // A field that the service will have.
  browserbase({ newField: true });
}

it('the options of each service are typed, and the callback receives its session', () => {
  expectTypeOf(types).toBeFunction();
});
