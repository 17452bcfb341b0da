import { Console } from 'node:console';
import { Writable } from 'node:stream';
import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import {
  attachBrowser,
  BrowserPool,
  leaseBrowser,
  runOf,
  serveProxy,
  withPooledBrowser,
  type ProxyEvent,
  type RunEvent,
} from '../../src/index.js';
import { playwright } from '../../src/playwright.js';
import { puppeteer } from '../../src/puppeteer.js';
import { browserless, cdp, kernel, webdriver } from '../../src/services.js';
import { JWT, TOKEN } from '../support/fake-service.js';
import { PlayedLease } from '../support/played-lease.js';

/** Each secret contains this text. */
const CANARY = /canary-\w+/g;

/** Everything that Node shows of a value by itself: what a debugger, a logger or a test runner prints. */
const WAYS: Readonly<Record<string, (value: unknown) => string | undefined>> = {
  inspect: (value) => inspect(value, { depth: 20 }),
  'inspect with getters and hidden fields': (value) =>
    inspect(value, {
      showHidden: true,
      getters: true,
      depth: 20,
      maxArrayLength: null,
      maxStringLength: null,
    }),
  'JSON.stringify': (value) => JSON.stringify(value),
  String: (value) => String(value),
  'console.table': (value) => {
    const text: string[] = [];
    const stdout = new Writable({ write: (chunk, _encoding, done) => (text.push(String(chunk)), done()) });
    new Console({ stdout }).table([value, Object(value)]);
    return text.join('');
  },
  structuredClone: (value) => {
    try {
      return inspect(structuredClone(value), { showHidden: true, depth: 20 });
    } catch {
      return undefined;
    }
  },
};

function expectNoCanary(objects: Readonly<Record<string, unknown>>): void {
  const shown = Object.entries(objects).flatMap(([what, value]) =>
    Object.entries(WAYS).flatMap(([way, show]) => {
      const text = show(value) ?? '';
      return [...text.matchAll(CANARY)].map(
        ({ index, 0: secret }) =>
          `${what}, ${way}: ${secret} in ${text.slice(Math.max(0, index - 80), index + 20)}`,
      );
    }),
  );
  expect(shown).toEqual([]);
}

it('shows no secret of any public object, however Node shows it', async () => {
  await using played = await PlayedLease.start();
  const { service, browser, connector } = played;
  const urls = { cdp_ws_url: `${browser.url}?jwt=${JWT}`, webdriver_ws_url: `${browser.url}?jwt=${JWT}` };
  service.script('acquire', {
    status: 200,
    json: played.session({ ...urls, browser_live_view_url: `https://h/?jwt=${JWT}` }),
  });
  const options = {
    ...service.options,
    service: { ...service.options.service, headers: { 'x-key': 'canary-header-0123456789' } },
    proxy: 'http://user:canary-proxy-password@proxy.example.com:3128',
  };
  const events: (RunEvent | ProxyEvent)[] = [];
  const onEvent = (event: RunEvent) => void events.push(event);
  const settings = { connector, onEvent };
  const objects: Record<string, unknown> = {};

  await using pool = new BrowserPool('test', options);
  objects['a new pool'] = inspect(pool, { showHidden: true, getters: true });
  await using rotating = new BrowserPool('test', { ...options, token: async () => TOKEN });
  for (const used of [pool, rotating]) {
    const run = await withPooledBrowser(
      used,
      async (facts) => expectNoCanary({ 'the argument of a callback': facts }),
      settings,
    );
    Object.assign(objects, { [`run ${Object.keys(objects).length}`]: run });
  }
  const error: unknown = await withPooledBrowser(
    pool,
    () => {
      throw new Error('mine');
    },
    settings,
  ).catch((thrown: unknown) => thrown);
  Object.assign(objects, { error, 'a failed run': runOf(error) });
  service.script('acquire', {
    status: 403,
    text: `${JWT} ${TOKEN} canary-header-0123456789 canary-proxy-password`,
  });
  objects['an error of the service'] = await withPooledBrowser(pool, () => 1, settings).catch(
    (thrown: unknown) => thrown,
  );
  service.script('acquire', { status: 200, json: played.session(urls) });

  const lease = await leaseBrowser(pool, settings);
  Object.assign(objects, { lease, session: lease.session, 'a copy of a session': { ...lease.session } });
  expectNoCanary(objects);
  const detached = await lease.detach();
  Object.assign(objects, { 'a detached lease': detached });
  await using attached = await attachBrowser(detached.secret, { connector, pool });
  Object.assign(objects, { 'an attached lease': attached });

  await using proxy = await serveProxy(pool, { onEvent, onClient: (event) => void events.push(event) });
  Object.assign(objects, { 'a proxy': proxy, pool, 'a pool with a token function': rotating, events });
  Object.assign(objects, {
    'a connector of Playwright': playwright(),
    'a connector of Puppeteer': puppeteer(),
  });
  Object.assign(objects, {
    kernel: kernel({ projectId: 'project' }),
    browserless: browserless({ baseUrl: 'https://h.example.com' }),
    cdp: cdp('wss://h.example.com/cdp?token=canary-cdp-0123456789'),
    webdriver: webdriver({ url: 'https://h.example.com/wd/hub' }),
  });
  expect(events.length).toBeGreaterThan(5);
  expectNoCanary(objects);
});
