import { expect, it } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { webdriver, type WebDriverSession } from '../../src/services.js';
import { rejection } from '../pool/support.js';
import { useSite } from '../support/site.js';

let requests = 0;
const site = useSite((_request, response) => {
  requests++;
  response.writeHead(500).end();
});

const POOLS: [what: string, open: () => BrowserPool<WebDriverSession>][] = [
  [
    'a WebDriver server',
    () => {
      const capabilities = { browserName: 'firefox' };
      return new BrowserPool('fox', { service: webdriver({ url: site.url, capabilities }) });
    },
  ],
  ['this machine', () => new BrowserPool<never>('fox', { baseUrl: 'local', local: { browser: 'firefox' } })],
];

it.each(POOLS)('refuses before a lease what Firefox of %s does not have', async (_what, open) => {
  await using pool = open();
  const only = 'The browsers of pool fox have only the protocol bidi';
  const bidi = { protocol: 'bidi' } as const;
  const refused: [Promise<unknown>, option: string, text: string][] = [
    [playwright.withPooledBrowser(pool, () => {}), 'protocol', `${only}. Playwright has no public API`],
    [puppeteer.withPooledBrowser(pool, () => {}), 'protocol', `${only}. Use protocol 'bidi'.`],
    [puppeteer.leaseBrowser(pool), 'protocol', only],
    [
      puppeteer.withPooledBrowser(pool, () => {}, { ...bidi, exposeNetwork: '<loopback>' }),
      'exposeNetwork',
      `${only}, and exposeNetwork needs cdp`,
    ],
    [
      puppeteer.leaseBrowser(pool, { ...bidi, downloads: { folder: 'files' } }),
      'downloads',
      `${only}, and downloads needs cdp`,
    ],
  ];
  for (const [call, option, text] of refused) {
    const error = await rejection(call);
    expect(error).toMatchObject({ name: 'InvalidOptionError', option });
    expect(error.message).toContain(text);
  }
  expect(requests).toBe(0);
});
