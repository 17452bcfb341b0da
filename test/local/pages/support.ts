import axe from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { launchBrowser } from '../replays/support.js';

/** A person with a browser. */
export interface Person {
  /** Opens a page until the end of the test, and collects its `faults`. */
  open(url: string, options?: BrowserContextOptions): Promise<Page>;
}

/** Starts the person's browser for a test file. */
export function usePerson(): Person {
  let browser: Browser;
  beforeAll(async () => void (browser = await launchBrowser()));
  // A page that shows what happens would be drawn until the end of the file.
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())));
  afterAll(() => browser?.close());
  return {
    open: async (url, options = {}) => {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
      context.setDefaultTimeout(150_000);
      const page = await context.newPage();
      watch(page, new URL(url).origin);
      await page.goto(url);
      return page;
    },
  };
}

const found = new WeakMap<Page, string[]>();

/** What went wrong in a page so far: errors, refused scripts and styles, requests that left its origin. */
export function faults(page: Page): string[] {
  return found.get(page)!;
}

function watch(page: Page, origin: string): void {
  const faults: string[] = [];
  found.set(page, faults);
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(message.text());
  });
  page.on('pageerror', ({ message }) => faults.push(message));
  page.on('request', (request) => {
    const { protocol, origin: to } = new URL(request.url());
    if (to !== origin && protocol !== 'blob:') faults.push(`request to ${request.url()}`);
  });
}

/** Changes the query, or the path, of a URL. */
export function changed(url: string, query: Readonly<Record<string, string>>, path?: string): string {
  const changed = new URL(url);
  for (const [name, value] of Object.entries(query)) changed.searchParams.set(name, value);
  if (path !== undefined) changed.pathname = path;
  return String(changed);
}

/** The secret of a link to a page. */
export function tokenIn(url: string): string {
  return new URL(url).searchParams.get('token')!;
}

export function jwtIn(url: string): string {
  return new URL(url).searchParams.get('jwt')!;
}

/** The violations of accessibility that axe finds. */
export async function violations(page: Page) {
  await loadAxe(page);
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
  return violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
}

/** Unlike the library, the protocol runs scripts that the page's policy refuses. */
async function loadAxe(page: Page): Promise<void> {
  const cdp = await page.context().newCDPSession(page);
  const { exceptionDetails } = await cdp.send('Runtime.evaluate', { expression: axe.source });
  expect(exceptionDetails).toBeUndefined();
  await cdp.detach();
}
