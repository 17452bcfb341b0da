import type {
  AttachOptions,
  BrowserPool,
  DetachedLease,
  HeldLeaseOptions,
  LeaseFacts,
  PooledBrowser,
  Run,
  RunOptions,
} from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';

/** The common part of both libraries' pages that these tests use. */
interface AnyPage {
  goto(url: string): Promise<unknown>;
  title(): Promise<string>;
  evaluate<Value>(script: string): Promise<Value>;
  close(): Promise<void>;
}

export interface AnyLease extends LeaseFacts {
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
  {
    name: 'Puppeteer over CDP',
    run: (pool, fn, options) => puppeteer.withPooledBrowser(pool, fn as never, options) as never,
    lease: (pool, options) => puppeteer.leaseBrowser(pool, options) as never,
    attach: (lease, options) => puppeteer.attachBrowser(lease, options) as never,
    openPage: ({ browser, context }) => (context ?? browser).newPage(),
  },
  {
    name: 'Puppeteer over BiDi',
    run: (pool, fn, options) =>
      puppeteer.withPooledBrowser(pool, fn as never, { ...options, protocol: 'bidi' }) as never,
    lease: (pool, options) => puppeteer.leaseBrowser(pool, { ...options, protocol: 'bidi' }) as never,
    attach: (lease, options) => puppeteer.attachBrowser(lease, { ...options, protocol: 'bidi' }) as never,
    openPage: ({ browser, context }) => (context ?? browser).newPage(),
  },
];
