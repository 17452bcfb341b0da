import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page as PlaywrightPage } from 'playwright-core';
import type { Page as PuppeteerPage } from 'puppeteer-core';
import type { RunEvent } from '../calls/events.js';
import type { RunOptions } from '../calls/options.js';
import { withPooledBrowser as withPlaywright } from '../calls/playwright.js';
import { withPooledBrowser as withPuppeteer } from '../calls/puppeteer.js';
import { runOf, type FailedRun, type Run } from '../calls/run.js';
import { listenOnLoopback } from '../net/loopback-server.js';
import { BrowserPool } from '../pool/browser-pool.js';
import { CliError } from './errors.js';
import { BIDI_LIBRARY, startPool } from './service.js';
import { counted, type Format } from './terminal.js';
import { isError } from '../shared/globals.js';

type PrintStep = (who: string, what: string, format?: Format) => void;

/** The receipt or the error of a job. */
export interface DemoOutcome {
  job: DemoJob;
  run?: Run<string> | FailedRun | undefined;
  receipt?: string;
  error?: Error;
}

/** The jobs of the demo. */
interface Plan {
  jobs: DemoJob[];
  /** Number of browsers: one job must wait, unless there is only one. */
  size: number;
  headline: string;
  /** The jobs without their packages, with what to install. */
  leftOut: string[];
}

/** @throws CliError if no job can run. */
export function planJobs(isInstalled: (name: string) => boolean): Plan {
  const missingOf = ({ needs }: DemoJob) => needs.filter((name) => !isInstalled(name));
  const jobs = JOBS.filter((job) => missingOf(job).length === 0);
  if (jobs.length === 0) throw new CliError(NO_LIBRARY);
  const size = Math.max(1, jobs.length - 1);
  const headline = `${counted(jobs.length, 'job')}, ${counted(size, 'browser')}`;
  return {
    jobs,
    size,
    headline: jobs.length > 1 ? `${headline}: one job must wait for a browser.` : headline,
    leftOut: JOBS.filter((job) => !jobs.includes(job)).map(
      (job) => `Left out: ${job.name}. To add it: npm install ${missingOf(job).join(' ')}`,
    ),
  };
}

const NO_LIBRARY =
  'The demo needs Playwright or Puppeteer. Install a library: npm install playwright-core, or npm install puppeteer-core';

/** Runs jobs at once on a local pool, and records each. Rejects only when the signal aborts. */
export async function runJobs(
  { jobs, size }: Plan,
  headful: boolean,
  print: PrintStep,
  signal: AbortSignal,
): Promise<DemoOutcome[]> {
  // Loaded first: loading a library later would delay the local pool, which runs in this process.
  const libraries = new Set(jobs.map(({ needs: [library] }) => library!));
  await Promise.all([...libraries].map((library) => import(library)));
  print('libraries', `loaded: ${[...libraries].join(', ')}`);
  const pools = [{ name: 'demo', size, headless: !headful }];
  await using local = await startPool({ pools }, signal);
  print('pool', `${counted(size, 'browser')} at ${local.baseUrl}`);
  await using shop = await openShop();
  print('shop', `open at ${shop.url}`);
  await using pool = new BrowserPool('demo', { baseUrl: local.baseUrl, token: local.token });
  const outcomes = await Promise.all(
    jobs.map(async (job) => {
      const log = (what: string) => print(job.name, what, job.format);
      return runJob(job, { pool, url: shop.url, log: (what) => log(`  ${what}`) }, log, signal);
    }),
  );
  await pool.close();
  await local.close();
  print('pool', 'closed: no browser, profile or socket is left');
  return outcomes;
}

/** In ms. Polls are short, so that the waiting job shows that it waits; the default is 25 s. */
const TIMEOUTS = { acquireTimeout: 60_000, pollTimeout: 1000, timeout: 30_000, replaysTimeout: 60_000 };

/** This process shows the calls of a job in its replay. */
const RECORD = { replays: 'record', recording: { by: 'client' } } as const;

async function runJob(job: DemoJob, shop: Order, log: Log, signal: AbortSignal): Promise<DemoOutcome> {
  const onEvent = (event: RunEvent) => {
    const step = describeStep(event);
    if (step !== undefined) log(step);
  };
  const name = `demo-${job.name.replace(' ', '-')}`;
  try {
    const run = await job.order(shop, { ...TIMEOUTS, ...RECORD, name, signal, onEvent });
    return { job, run, receipt: run.value };
  } catch (error) {
    signal.throwIfAborted();
    log(`failed: ${(error as Error).message}`);
    return { job, run: runOf(error), error: error as Error };
  }
}

/** Describes a step of a run; `undefined` for events that repeat an earlier step. */
function describeStep(event: RunEvent): string | undefined {
  const error = 'error' in event ? event.error : undefined;
  const cause = isError(error) ? `: ${error.message}` : '';
  switch (event.type) {
    case 'acquiring':
      return event.attempt === 1 ? 'requests a browser from the pool' : undefined;
    case 'waiting':
      return `waits: no browser is free yet${cause}`;
    case 'acquired':
      return `leased browser ${event.sessionId.slice(0, 8)}`;
    case 'connecting':
      return `connects over ${event.protocol === 'bidi' ? 'WebDriver BiDi' : 'CDP'}`;
    case 'connected':
      return 'connected: a page is ready';
    case 'callback-started':
      return 'callback runs';
    case 'callback-ended':
      return `callback ended: ${event.status}`;
    case 'cleaned-up':
      return event.error ? `cleanup failed${cause}` : 'cleaned up: its pages and contexts are closed';
    case 'recording-started':
      return 'recording started';
    case 'recording-stopped':
      return `recording stopped${cause}`;
    case 'replays':
      return event.status === 'pending'
        ? 'replay listed: its video is being written'
        : `replay: ${event.status}`;
    case 'released':
      return `released: ${event.released === 'reused' ? 'back in the pool' : 'destroyed'}`;
    case 'ended':
      return undefined;
    default:
      return `${event.type}${cause}`;
  }
}

type Log = (what: string) => void;

interface Order {
  pool: BrowserPool;
  url: string;
  log: Log;
}

export interface DemoJob {
  name: 'playwright cdp' | 'puppeteer cdp' | 'puppeteer bidi';
  /** The library, and the other packages without which the job can't run. */
  needs: readonly string[];
  format: Format;
  /** Leases a browser and orders in the shop. The value of the run is the receipt. */
  order: (order: Order, options: Omit<RunOptions, 'protocol' | 'connectOptions'>) => Promise<Run<string>>;
}

const JOBS: readonly DemoJob[] = [
  {
    name: 'playwright cdp',
    needs: ['playwright-core'],
    format: 'cyan',
    order: ({ pool, ...order }, options) =>
      withPlaywright(pool, ({ page }) => orderWithPlaywright(page, order), options),
  },
  ...(['cdp', 'bidi'] as const).map((protocol) => ({
    name: `puppeteer ${protocol}` as const,
    needs: ['puppeteer-core', ...(protocol === 'bidi' ? [BIDI_LIBRARY] : [])],
    format: protocol === 'cdp' ? ('magenta' as const) : ('yellow' as const),
    order: ({ pool, ...order }: Order, options: object) =>
      withPuppeteer(pool, ({ page }) => orderWithPuppeteer(page, order), { ...options, protocol }),
  })),
];

async function orderWithPlaywright(page: PlaywrightPage, { url, log }: Omit<Order, 'pool'>): Promise<string> {
  await page.goto(url);
  log(`opened "${await page.title()}", and orders a teapot`);
  await page.getByRole('link', { name: 'Teapot' }).click();
  await page.getByLabel('Your name').fill('Ada');
  await page.getByRole('button', { name: 'Order' }).click();
  return page.locator('#receipt').innerText();
}

/** Without locators: if the page is closed at the wrong moment, a locator of Puppeteer has an unhandled rejection. */
async function orderWithPuppeteer(page: PuppeteerPage, { url, log }: Omit<Order, 'pool'>): Promise<string> {
  await page.goto(url);
  log(`opened "${await page.title()}", and orders a lamp`);
  await page.click('a[href="/lamp"]');
  const name = await page.waitForSelector('input');
  await name!.type('Grace');
  await page.click('button');
  const receipt = await page.waitForSelector('#receipt');
  return receipt!.evaluate(({ textContent }) => textContent ?? '');
}

/** In ms: the payment takes long enough that the third job must wait for a browser. */
const PAYMENT = 900;

const PRODUCTS = [
  { path: '/teapot', name: 'Teapot 🫖', price: '24.00 EUR' },
  { path: '/lamp', name: 'Lamp 💡', price: '39.50 EUR' },
] as const;

async function openShop(): Promise<AsyncDisposable & { url: string }> {
  let orders = 0;
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    answer(request, () => ++orders).then(
      (page) => response.end(page),
      () => response.destroy(),
    );
  });
  return {
    url: `http://${await listenOnLoopback(server)}/`,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server.close(), 'close');
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answer(request: IncomingMessage, nextOrder: () => number): Promise<string> {
  const product = PRODUCTS.find(({ path }) => path === request.url);
  if (!product) {
    const links = PRODUCTS.map(({ path, name, price }) => `<p><a href="${path}">${name}</a> ${price}</p>`);
    return page('The Little Shop', links.join(''));
  }
  const { name, price } = product;
  if (request.method !== 'POST') return page(name, `<p>${price}</p>${FORM}`);
  const customer = new URLSearchParams(await text(request)).get('name') ?? '';
  await sleep(PAYMENT);
  const receipt = `Order ${nextOrder()} for ${escapeHtml(customer)}: ${name}, ${price}`;
  return page('Thank you!', `<p id="receipt">${receipt}</p>`);
}

const FORM =
  '<form method="post"><label>Your name <input name="name" required></label> <button>Order</button></form>';

function page(title: string, body: string): string {
  const style = 'body { font: 20px/1.6 system-ui, sans-serif; margin: 10vh auto; width: 24em }';
  const head = `<meta charset="utf-8"><title>${title}</title><style>${style}</style>`;
  return `<!doctype html><html lang="en">${head}<h1>${title}</h1>${body}`;
}

function escapeHtml(given: string): string {
  return given.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
