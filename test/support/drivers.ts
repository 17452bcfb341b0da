import {
  withPooledBrowser,
  type AttachOptions,
  type BrowserPool,
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
export interface AnyPage {
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

type Options = Omit<RunOptions, 'protocol'>;
type LeaseOptions = Omit<HeldLeaseOptions, 'protocol'>;

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
    options?: Omit<AttachOptions, 'protocol'>,
  ): Promise<PooledBrowser<AnyLease>>;
  /** Opens a page in the context of the callback's page. */
  openPage(lease: AnyLease): Promise<unknown>;
}

/** The three ways to drive a leased browser. All must behave the same. */
export const DRIVERS: Driver[] = [
  driverOf('Playwright over CDP', playwright),
  driverOf('Puppeteer over CDP', puppeteer),
  driverOf('Puppeteer over BiDi', puppeteer, { protocol: 'bidi' }),
];

function driverOf(name: string, library: object, protocol: { protocol?: 'bidi' } = {}): Driver {
  const { withPooledBrowser: run, leaseBrowser, attachBrowser } = library as typeof puppeteer;
  return {
    name,
    run: (pool, fn, options) => run(pool, fn as never, { ...options, ...protocol }) as never,
    lease: (pool, options) => leaseBrowser(pool, { ...options, ...protocol }) as never,
    attach: (lease, options) => attachBrowser(lease, { ...options, ...protocol }) as never,
    openPage: ({ browser, context }) => (context ?? browser).newPage(),
  };
}

/** No browser: for faults of the HTTP side. */
export const PLAIN: Pick<Driver, 'name' | 'run'> = {
  name: 'no driver',
  run: (pool, fn, options) =>
    withPooledBrowser(pool, fn as never, { ...options, connector: plainConnector }) as never,
};
