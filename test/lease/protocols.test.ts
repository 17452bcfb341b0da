import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { BrowserPool, serveProxy, type ProxyOptions } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { webdriver, type WebDriverSession } from '../../src/services.js';
import { runHere } from '../cli/support.js';
import { rejection } from '../pool/support.js';
import { FakeService, session } from '../support/fake-service.js';
import { playBidi, type BidiAnswer } from '../support/played-bidi.js';
import { PlayedBrowser } from '../support/played-browser.js';
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

describe('a browser whose session has only a bidiUrl', () => {
  const ONLY_BIDI = 'The leased browser of pool pool has only the protocol bidi';
  const NEEDED = (option: string) => [option, `${ONLY_BIDI}, and ${option} needs cdp. Remove the option.`];
  const OF_PLAYWRIGHT = ['protocol', `${ONLY_BIDI}. Playwright has no public API`];
  const OF_PUPPETEER = ['protocol', `${ONLY_BIDI}. Use protocol 'bidi'.`];
  const OF_CLIENT = ['501', 'the path that ends with /session is the address of WebDriver BiDi'];
  const bidi = { protocol: 'bidi' } as const;
  const none = () => expect.fail('called');

  /** The refusal of a call: the option, and the text. */
  const refusalOf = async (call: Promise<unknown>) => {
    const { name, option, message } = (await rejection(call)) as Error & { option: string };
    expect(name).toBe('InvalidOptionError');
    return [option, message];
  };
  const firstOf = async (outcomes: AsyncIterable<unknown>) => {
    for await (const outcome of outcomes) expect.fail(JSON.stringify(outcome));
  };
  /** The answer to a client of a proxy. */
  const answerOf = async (pool: BrowserPool, path = '', options: ProxyOptions = {}) => {
    await using proxy = await serveProxy(pool, options);
    const client = new WebSocket(proxy.url.replace('http', 'ws') + path).on('error', () => {});
    const [, response] = (await once(client, 'unexpected-response')) as [unknown, IncomingMessage];
    return [`${response.statusCode}`, await text(response)];
  };
  const printed = async ({ options: { baseUrl, token } }: FakeService, ...args: string[]) => {
    const { code, stdout, stderr } = await runHere(['exec', 'pool', ...args, '--', 'echo', 'ran'], {
      baseUrl,
      token,
    });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    return [args[0], stderr];
  };

  it.each<
    [entry: string, refuse: (pool: BrowserPool, service: FakeService) => Promise<unknown>, expected: unknown]
  >([
    [
      'withPooledBrowser of Playwright',
      (pool) => refusalOf(playwright.withPooledBrowser(pool, none)),
      OF_PLAYWRIGHT,
    ],
    [
      "context: 'new' of Playwright",
      (pool) => refusalOf(playwright.withPooledBrowser(pool, none, { context: 'new' })),
      OF_PLAYWRIGHT,
    ],
    ['leaseBrowser of Playwright', (pool) => refusalOf(playwright.leaseBrowser(pool)), OF_PLAYWRIGHT],
    [
      'mapPooledBrowsers of Playwright',
      (pool) => refusalOf(firstOf(playwright.mapPooledBrowsers(pool, [1], none))),
      OF_PLAYWRIGHT,
    ],
    [
      'withPooledBrowser of Puppeteer',
      (pool) => refusalOf(puppeteer.withPooledBrowser(pool, none)),
      OF_PUPPETEER,
    ],
    ['leaseBrowser of Puppeteer', (pool) => refusalOf(puppeteer.leaseBrowser(pool)), OF_PUPPETEER],
    [
      'mapPooledBrowsers of Puppeteer',
      (pool) => refusalOf(firstOf(puppeteer.mapPooledBrowsers(pool, [1], none))),
      OF_PUPPETEER,
    ],
    [
      'exposeNetwork',
      (pool) => refusalOf(puppeteer.withPooledBrowser(pool, none, { ...bidi, exposeNetwork: '<loopback>' })),
      NEEDED('exposeNetwork'),
    ],
    [
      'downloads',
      (pool) => refusalOf(puppeteer.leaseBrowser(pool, { ...bidi, downloads: { folder: 'files' } })),
      NEEDED('downloads'),
    ],
    ['a client of a proxy', (pool) => answerOf(pool), OF_CLIENT],
    ['a client of a named browser', (pool) => answerOf(pool, '/alice'), OF_CLIENT],
    ['a client of a page', (pool) => answerOf(pool, '/devtools/page/any'), OF_CLIENT],
    ['a Playwright client of a proxy', (pool) => answerOf(pool, '/playwright'), OF_CLIENT],
    [
      'a proxy with exposeNetwork',
      (pool) => answerOf(pool, '/session', { exposeNetwork: '*' }),
      ['501', 'exposeNetwork needs cdp'],
    ],
    [
      'exec with an exposed host',
      (_pool, service) => printed(service, '--expose-network', 'localhost:1'),
      ['--expose-network', `${ONLY_BIDI}. --expose-network needs cdp. Remove the option.`],
    ],
    [
      'exec with a local address',
      (_pool, service) => printed(service, '--local-endpoint'),
      NEEDED('--local-endpoint'),
    ],
  ])(
    'is released, no other one is leased, and the reason says what to do: %s',
    async (entry, refuse, expected) => {
      await using service = await FakeService.start();
      service.script('acquire', { status: 200, json: session({ cdp_ws_url: '' }) });
      await using pool = new BrowserPool('pool', service.options);
      const [option, text] = (await refuse(pool, service)) as [string, string];
      const [expectedOption, expectedText] = expected as [string, string];
      expect(option).toBe(expectedOption);
      expect(text).toContain(expectedText);
      await pool.close();
      expect(service.of('acquire')).toHaveLength(1);
      // By default, exec destroys each browser that its command could have used.
      const reuse = entry !== 'exec with a local address';
      expect(service.of('release').map(({ body }) => body)).toEqual([{ session_id: 'session-1', reuse }]);
    },
  );
});

describe('a browser that has only WebDriver BiDi', () => {
  const answering =
    (method: string, result: object | 'none'): BidiAnswer =>
    (command) =>
      command.method === method ? result : undefined;
  const NUMBERS = Array.from({ length: 20_000 }, (_, index) => `${index}`);

  /** What one lease shows, which drops its first connection if it reconnects. */
  const lease = async (answer: BidiAnswer, { reconnects = false } = {}) => {
    await using service = await FakeService.start();
    await using browser = await PlayedBrowser.start();
    playBidi(browser, answer);
    service.script('acquire', {
      status: 200,
      json: session({ cdp_ws_url: '', webdriver_ws_url: browser.url }),
    });
    await using pool = new BrowserPool('pool', service.options);
    const options = { protocol: 'bidi', connectAttempts: 1 } as const;
    const open = () =>
      puppeteer.leaseBrowser(pool, { ...options, ...(reconnects && { reconnect: 'eager' }) });
    const faults: string[] = [];
    try {
      const leased = await open();
      if (reconnects) {
        browser.cut();
        await expect.poll(() => browser.dialled).toBe(2);
        await leased.use(() => {});
      }
      const { cleanupErrors } = await leased.release();
      faults.push(...cleanupErrors.map(({ cause }) => (cause as Error).message));
    } catch (error) {
      faults.push((error as Error).message);
    }
    return { faults: faults.join('; '), reuse: service.of('release').map(({ body }) => body?.['reuse']) };
  };

  it('is cleaned and reused', async () => {
    expect(await lease(() => undefined)).toEqual({ faults: '', reuse: [true] });
  });

  it.each<[what: string, answer: BidiAnswer, fault: string]>([
    [
      'keeps its user contexts',
      answering('browser.removeUserContext', {}),
      'user context of the lease is still',
    ],
    [
      'gives its own context for a new one',
      answering('browser.createUserContext', { userContext: 'default' }),
      'removes the storage of its own context',
    ],
    ['does not end its session', answering('session.end', 'none'), 'did not respond'],
    [
      'lists very many pages',
      answering('browsingContext.getTree', {
        contexts: NUMBERS.map((context) => ({ context, url: '', userContext: 'default', children: [] })),
      }),
      'The result of browsingContext.getTree can not be read',
    ],
    [
      'lists very many user contexts',
      answering('browser.getUserContexts', { userContexts: NUMBERS.map((userContext) => ({ userContext })) }),
      'The result of browser.getUserContexts can not be read',
    ],
    [
      'lists very many windows',
      answering('browser.getClientWindows', {
        clientWindows: NUMBERS.map((clientWindow) => ({ clientWindow })),
      }),
      'The result of browser.getClientWindows can not be read',
    ],
  ])('is destroyed if it %s', async (_what, answer, fault) => {
    const { faults, reuse } = await lease(answer);
    expect(faults).toContain(fault);
    expect(reuse).toEqual([false]);
  });

  it('is destroyed after a download of an earlier connection of its lease', async () => {
    let isFirst = true;
    const { faults, reuse } = await lease(
      ({ method }, client) => {
        if (method !== 'browser.getUserContexts' || !isFirst) return undefined;
        isFirst = false;
        client.send('{"type":"event","method":"browsingContext.downloadWillBegin","params":{}}');
        return undefined;
      },
      { reconnects: true },
    );
    expect(faults).toContain('removes a download');
    expect(reuse).toEqual([false]);
  });
});
