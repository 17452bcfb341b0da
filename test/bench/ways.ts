import Kernel from '@onkernel/sdk';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { request } from 'undici';
import type { BrowserPool } from 'pooled-browser';
import * as ours from 'pooled-browser/playwright';
import * as oursPuppeteer from 'pooled-browser/puppeteer';
import type { Service } from './bench.js';

export interface UsablePage {
  evaluate(script: string): Promise<unknown>;
}

/** One lease from the call to its end; `use` is called once there is a usable page. */
export type LeaseOnce = (use: (page: UsablePage) => Promise<unknown>) => Promise<unknown>;

export interface Session {
  session_id: string;
  cdp_ws_url: string;
  webdriver_ws_url: string;
}

/** The requests of a lease. */
export interface Client {
  acquire(): Promise<Session>;
  replays(sessionId: string): PromiseLike<unknown>;
  release(sessionId: string): PromiseLike<unknown>;
}

/** Connects, calls `use`, and disconnects. */
type Drive = (session: Session, use: (page: UsablePage) => Promise<unknown>) => Promise<unknown>;

const drivePuppeteer = async (options: object, use: (page: UsablePage) => Promise<unknown>) => {
  const browser = await puppeteer.connect({ ...options, defaultViewport: null });
  await use((await browser.pages())[0]!);
  await browser.disconnect();
};

const DRIVE = {
  'Playwright over CDP': async ({ cdp_ws_url }, use) => {
    const browser = await chromium.connectOverCDP(cdp_ws_url);
    await use(browser.contexts()[0]!.pages()[0]!);
    await browser.close();
  },
  'Puppeteer over CDP': ({ cdp_ws_url }, use) => drivePuppeteer({ browserWSEndpoint: cdp_ws_url }, use),
  'Puppeteer over BiDi': ({ webdriver_ws_url }, use) =>
    drivePuppeteer({ browserWSEndpoint: webdriver_ws_url, protocol: 'webDriverBiDi' }, use),
} satisfies Record<string, Drive>;

export type Driver = keyof typeof DRIVE;
export const DRIVERS = Object.keys(DRIVE) as Driver[];

/** The minimum: raw HTTP and the automation library alone, one step after the other. */
export function byHand(service: Service, driver: Driver): LeaseOnce {
  return inSteps(rawClient(service), DRIVE[driver]);
}

/**
 * The same requests as this library: also lists the replays before the use, to distinguish earlier replays of the
 * session, and checks that the page responds.
 */
export function byHandWithAllSteps(service: Service, driver: Driver): LeaseOnce {
  const { acquire, replays, release } = rawClient(service);
  return async (use) => {
    const session = await acquire();
    const earlier = replays(session.session_id);
    await DRIVE[driver](session, async (page) => {
      await use(page);
      await earlier;
      await Promise.all([replays(session.session_id), page.evaluate('0')]);
    });
    await release(session.session_id);
  };
}

/** The public service's own SDK and the automation library alone. */
export function withSdk({ baseUrl, token }: Service, driver: Driver): LeaseOnce {
  const kernel = new Kernel({ apiKey: token, baseURL: baseUrl });
  const client: Client = {
    acquire: async () => kernel.browserPools.acquire('bench', { acquire_timeout_seconds: 30 }),
    replays: (sessionId) => kernel.browsers.replays.list(sessionId),
    release: (session_id) => kernel.browserPools.release('bench', { session_id }),
  };
  return inSteps(client, DRIVE[driver]);
}

/** This library with its defaults. */
export function withOurs(
  pool: BrowserPool,
  driver: Driver,
  options: { awaitRelease?: boolean; release?: 'reuse' } = {},
): LeaseOnce {
  if (driver === 'Playwright over CDP')
    return (use) => ours.withPooledBrowser(pool, ({ page }) => use(page), options);
  const all = { ...options, ...(driver === 'Puppeteer over BiDi' && { protocol: 'bidi' as const }) };
  return (use) => oursPuppeteer.withPooledBrowser(pool, ({ page }) => use(page as UsablePage), all);
}

function inSteps(client: Client, drive: Drive): LeaseOnce {
  return async (use) => {
    const session = await client.acquire();
    await drive(session, use);
    await client.replays(session.session_id);
    await client.release(session.session_id);
  };
}

export function rawClient({ baseUrl, token }: Service): Client {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const post = async (path: string, body: object) => {
    const url = `${baseUrl}/browser_pools/bench/${path}`;
    return (await request(url, { method: 'POST', headers, body: JSON.stringify(body) })).body;
  };
  return {
    acquire: async () => (await (await post('acquire', { acquire_timeout_seconds: 30 })).json()) as Session,
    release: async (session_id) => (await post('release', { session_id, reuse: true })).dump(),
    replays: async (sessionId) => {
      const { body } = await request(`${baseUrl}/browsers/${sessionId}/replays`, { headers });
      return body.json();
    },
  };
}
