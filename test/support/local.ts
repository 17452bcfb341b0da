import { chromium } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { BrowserPool, type BrowserSession } from '../../src/index.js';
import { startLocalPool, type LocalPool, type LocalPoolOptions } from '../../src/local.js';

/** A local pool for the whole test file, by default with one browser, and its client. */
export function useLocalPool(options: LocalPoolOptions = {}): { local: LocalPool; pool: BrowserPool } {
  const used = {} as { local: LocalPool; pool: BrowserPool };
  beforeAll(async () => {
    used.local = await startLocalPool({ pools: [{ name: 'test', size: 1 }], ...options });
    used.pool = new BrowserPool(used.local.pools[0]!, {
      baseUrl: used.local.baseUrl,
      token: used.local.token,
    });
  });
  afterAll(async () => {
    await used.pool?.close();
    await used.local?.close();
  });
  return used;
}

/** URLs of the pages in a leased browser, read by a plain client. */
export async function pagesOf({ cdp_ws_url }: BrowserSession): Promise<string[]> {
  const browser = await chromium.connectOverCDP(cdp_ws_url);
  const urls = browser.contexts().flatMap((context) => context.pages().map((page) => page.url()));
  await browser.close();
  return urls;
}

/** Leases the browser without an automation library, and releases it for reuse. */
export async function look<Value>(
  pool: BrowserPool,
  fn: (session: BrowserSession) => Promise<Value>,
): Promise<Value> {
  const session = await pool.acquire({ acquire_timeout_seconds: 60 });
  if (!session) throw new Error('No browser became available');
  try {
    return await fn(session);
  } finally {
    await pool.release(session.session_id);
  }
}

/** A page with this title. */
export function titled(title: string): string {
  return `data:text/html,<title>${title}</title>`;
}
