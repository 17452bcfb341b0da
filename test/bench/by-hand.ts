import Kernel from '@onkernel/sdk';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { request } from 'undici';
import * as ours from 'pooled-browser/playwright';
import * as oursPuppeteer from 'pooled-browser/puppeteer';
import { BrowserPool } from 'pooled-browser';

/** What each way of leasing needs to know. */
export interface Service {
  baseUrl: string;
  token: string;
}

export interface UsablePage {
  evaluate(script: string): Promise<unknown>;
}

/** One lease from the call to its end; `use` is called once there is a usable page. */
export type LeaseOnce = (use: (page: UsablePage) => Promise<unknown>) => Promise<unknown>;

interface Session {
  session_id: string;
  cdp_ws_url: string;
  webdriver_ws_url: string;
}

/** The steps that a lease takes at the service, without any of the library's care. */
interface Steps {
  acquire(): Promise<Session>;
  replays(sessionId: string): PromiseLike<unknown>;
  release(sessionId: string): PromiseLike<unknown>;
}

/** Connects, calls `use`, and disconnects. */
type Drive = (session: Session, use: (page: UsablePage) => Promise<unknown>) => Promise<unknown>;

export const PROTOCOLS = ['Playwright over CDP', 'Puppeteer over CDP', 'Puppeteer over BiDi'] as const;
export type ProtocolName = (typeof PROTOCOLS)[number];

const DRIVE: Record<ProtocolName, Drive> = {
  'Playwright over CDP': async ({ cdp_ws_url }, use) => {
    const browser = await chromium.connectOverCDP(cdp_ws_url);
    await use(browser.contexts()[0]!.pages()[0]!);
    await browser.close();
  },
  'Puppeteer over CDP': async ({ cdp_ws_url }, use) => {
    const browser = await puppeteer.connect({ browserWSEndpoint: cdp_ws_url, defaultViewport: null });
    await use((await browser.pages())[0]!);
    await browser.disconnect();
  },
  'Puppeteer over BiDi': async ({ webdriver_ws_url }, use) => {
    const browser = await puppeteer.connect({
      browserWSEndpoint: webdriver_ws_url,
      defaultViewport: null,
      protocol: 'webDriverBiDi',
    });
    await use((await browser.pages())[0]!);
    await browser.disconnect();
  },
};

/** Raw HTTP and the bare driver, one step after the other. */
export function byHand(service: Service, protocol: ProtocolName): LeaseOnce {
  return inSteps(rawSteps(service), DRIVE[protocol]);
}

/**
 * The same, with two steps that nearly nobody writes: the replays are listed before the use as well, so that those of
 * the lease before can be told from ours, and the page is asked whether it still answers.
 */
export function byHandWithAllSteps(service: Service, protocol: ProtocolName): LeaseOnce {
  const { acquire, replays, release } = rawSteps(service);
  return async (use) => {
    const session = await acquire();
    const earlier = replays(session.session_id);
    await DRIVE[protocol](session, async (page) => {
      await use(page);
      await earlier;
      await Promise.all([replays(session.session_id), page.evaluate('0')]);
    });
    await release(session.session_id);
  };
}

/** The public service's own SDK and the bare driver. */
export function withSdk({ baseUrl, token }: Service, protocol: ProtocolName): LeaseOnce {
  const kernel = new Kernel({ apiKey: token, baseURL: baseUrl });
  const steps: Steps = {
    acquire: async () => kernel.browserPools.acquire('bench', { acquire_timeout_seconds: 30 }),
    replays: (sessionId) => kernel.browsers.replays.list(sessionId),
    release: (session_id) => kernel.browserPools.release('bench', { session_id }),
  };
  return inSteps(steps, DRIVE[protocol]);
}

/** This library, as it comes. A new pool for each lease makes it cold. */
export function withOurs(
  service: Service,
  protocol: ProtocolName,
  pool = new BrowserPool('bench', service),
  options: { awaitRelease?: boolean } = {},
): LeaseOnce {
  if (protocol === 'Playwright over CDP')
    return (use) => ours.withPooledBrowser(pool, ({ page }) => use(page), options);
  const bidi = protocol === 'Puppeteer over BiDi' ? ({ protocol: 'bidi' } as const) : {};
  const all = { ...options, ...bidi };
  return (use) => oursPuppeteer.withPooledBrowser(pool, ({ page }) => use(page as UsablePage), all);
}

function inSteps(steps: Steps, drive: Drive): LeaseOnce {
  return async (use) => {
    const session = await steps.acquire();
    await drive(session, use);
    await steps.replays(session.session_id);
    await steps.release(session.session_id);
  };
}

function rawSteps({ baseUrl, token }: Service): Steps {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const post = async (path: string, body: object) => {
    const response = await request(`${baseUrl}/browser_pools/bench/${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    return response.body;
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
