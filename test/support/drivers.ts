import {
  withPooledBrowser,
  type AttachOptions,
  type BrowserPool,
  type BrowserSession,
  type DetachedLease,
  type HeldLeaseOptions,
  type LeaseFacts,
  type PooledBrowser,
  type Run,
  type RunOptions,
} from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { plainConnector } from './plain-connector.js';

/** The common part of both libraries' pages that these tests use. */
interface AnyPage {
  goto(url: string): Promise<unknown>;
  title(): Promise<string>;
  evaluate<Value>(script: string): Promise<Value>;
  close(): Promise<void>;
}

export interface AnyLease extends LeaseFacts<BrowserSession> {
  page: AnyPage;
  browser: { close(): Promise<void>; newPage(): Promise<unknown> };
  context?: { newPage(): Promise<unknown> };
}

type Options = Omit<RunOptions, 'protocol' | 'driver'>;
type LeaseOptions = Omit<HeldLeaseOptions, 'protocol' | 'driver'>;

export interface Driver {
  name: string;
  run<Value>(
    pool: BrowserPool,
    fn: (lease: AnyLease) => Value | Promise<Value>,
    options?: Options,
  ): Promise<Run<Value>>;
  lease(pool: BrowserPool, options?: LeaseOptions): Promise<PooledBrowser<AnyLease>>;
  attach(
    lease: DetachedLease | string,
    options?: Omit<AttachOptions, 'protocol' | 'driver'>,
  ): Promise<PooledBrowser<AnyLease>>;
  /** Opens a page in the context of the callback's page. */
  openPage(lease: AnyLease): Promise<unknown>;
}

/** The three ways to drive a leased browser. All must behave the same. */
export const DRIVERS: Driver[] = [
  {
    name: 'Playwright over CDP',
    run: (pool, fn, options) => playwright.withPooledBrowser(pool, fn, options),
    lease: (pool, options) => playwright.leaseBrowser(pool, options) as never,
    attach: (lease, options) => playwright.attachBrowser(lease, options) as never,
    openPage: ({ context }) => context!.newPage(),
  },
  puppeteerOver('CDP', {}),
  puppeteerOver('BiDi', { protocol: 'bidi' }),
];

function puppeteerOver(name: string, protocol: { protocol?: 'bidi' }): Driver {
  return {
    name: `Puppeteer over ${name}`,
    run: (pool, fn, options) =>
      puppeteer.withPooledBrowser(pool, fn as never, { ...options, ...protocol }) as never,
    lease: (pool, options) => puppeteer.leaseBrowser(pool, { ...options, ...protocol }) as never,
    attach: (lease, options) => puppeteer.attachBrowser(lease, { ...options, ...protocol }) as never,
    openPage: ({ browser, context }) => (context ?? browser).newPage(),
  };
}

/** No browser: for faults of the HTTP side. */
export const PLAIN: Pick<Driver, 'name' | 'run'> = {
  name: 'no driver',
  run: (pool, fn, options) =>
    withPooledBrowser(pool, fn as never, { ...options, connector: plainConnector }) as never,
};
