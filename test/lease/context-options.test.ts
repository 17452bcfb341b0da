import { expect, it } from 'vitest';
import { InvalidOptionError, type Connector } from '../../src/index.js';
import { playwright } from '../../src/playwright.js';
import { puppeteer } from '../../src/puppeteer.js';
import { leaseChecks, readLeaseOptions } from '../../src/calls/options.js';
import { plainConnector } from '../support/plain-connector.js';

function read(connector: Connector, contextOptions: object, options: object = {}) {
  return readLeaseOptions(leaseChecks, { ...options, contextOptions }, { caller: 'leaseBrowser', connector });
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
  (connector, options, name, advice) => {
    const refusal = expect.objectContaining({ option: `contextOptions.${name}` }) as Error;
    expect(() => read(connector, options)).toThrow(InvalidOptionError);
    expect(() => read(connector, options)).toThrow(refusal);
    expect(() => read(connector, options)).toThrow(advice);
  },
);

it("implies context: 'new', and is refused with the browser's own context or another connector", () => {
  // A newer version of the library may have further options.
  const options = { locale: 'de-DE', somethingNew: true };
  expect(read(PLAYWRIGHT, options)).toMatchObject({ context: 'new', contextOptions: options });
  expect(read(PLAYWRIGHT, options, { context: 'new' })).toMatchObject({ context: 'new' });
  const refused: [Connector, object, string][] = [
    [PLAYWRIGHT, { context: 'default' }, "context: 'default' is the browser's own one"],
    [plainConnector, {}, 'has no checkContext'],
  ];
  for (const [connector, given, message] of refused) {
    const call = () => read(connector, options, given);
    expect(call).toThrow(expect.objectContaining({ option: 'contextOptions' }) as Error);
    expect(call).toThrow(message);
  }
});
