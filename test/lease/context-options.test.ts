import { expect, it, vi } from 'vitest';
import { InvalidOptionError, leaseBrowser, type Connector } from '../../src/index.js';
import { playwright } from '../../src/playwright.js';
import { puppeteer } from '../../src/puppeteer.js';
import { rejection } from '../pool/support.js';
import { plainConnector } from '../support/plain-connector.js';
import { PlayedLease } from '../support/played-lease.js';

/** The error of a lease with these options, after which nothing was sent. */
async function refusal(connector: Connector, contextOptions: object, options: object = {}) {
  await using played = await PlayedLease.start();
  const error = await rejection(leaseBrowser(played.pool, { ...options, connector, contextOptions }));
  expect(played.service.requests).toEqual([]);
  return error;
}

const [PLAYWRIGHT, PUPPETEER] = [playwright(), puppeteer()];

it.each<[connector: Connector, options: object, option: string, advice: string]>([
  [PLAYWRIGHT, { viewPort: null }, 'viewPort', 'Did you mean viewport?'],
  [PLAYWRIGHT, { timezone: 'UTC' }, 'timezone', 'Did you mean timezoneId?'],
  [PLAYWRIGHT, { proxyServer: 'http://a' }, 'proxyServer', 'Pass proxy: { server }.'],
  [PLAYWRIGHT, { cookies: [] }, 'cookies', 'Pass storageState'],
  [PLAYWRIGHT, { headless: true }, 'headless', 'The pool starts its browsers'],
  [PLAYWRIGHT, { storageState: '/none.json' }, 'storageState', 'Sign in once'],
  [PUPPETEER, { storageState: {} }, 'storageState', 'Pass its cookies as cookies'],
  [PUPPETEER, { locale: 'de-DE' }, 'locale', 'Use pooled-browser/playwright'],
  [PUPPETEER, { proxyserver: 'http://a' }, 'proxyserver', 'Did you mean proxyServer?'],
  [PUPPETEER, { viewport: { width: 5 } }, 'viewport', 'a width and a height'],
  [PUPPETEER, { userAgent: 5 }, 'userAgent', 'must be a string'],
  [PUPPETEER, { extraHTTPHeaders: { a: 1 } }, 'extraHTTPHeaders', 'an object of strings'],
  [PUPPETEER, { cookies: [{ name: 'a', value: 'b' }] }, 'cookies', 'a domain'],
])(
  '$0.library: the context options %j are refused before anything is sent',
  async (connector, options, name, advice) => {
    const error = await refusal(connector, options);
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error).toMatchObject({ option: `contextOptions.${name}` });
    expect(error.message).toContain(advice);
  },
);

it("implies context: 'new', and is refused with the browser's own context or another connector", async () => {
  // A newer version of the library may have further options.
  const options = { locale: 'de-DE', somethingNew: true };
  await using played = await PlayedLease.start();
  const connect = vi.fn(played.connector.connect);
  const connector = { ...PLAYWRIGHT, connect };
  for (const given of [{}, { context: 'new' }] as const) {
    const lease = await leaseBrowser(played.pool, { ...given, connector, contextOptions: options });
    await lease.release();
    expect(connect.mock.lastCall![0]).toMatchObject({ context: 'new', contextOptions: options });
  }
  const refused: [Connector, object, string][] = [
    [PLAYWRIGHT, { context: 'default' }, "context: 'default' is the browser's own one"],
    [plainConnector, {}, 'has no checkContext'],
  ];
  for (const [connector, given, message] of refused) {
    const error = await refusal(connector, options, given);
    expect(error).toMatchObject({ option: 'contextOptions' });
    expect(error.message).toContain(message);
  }
});
