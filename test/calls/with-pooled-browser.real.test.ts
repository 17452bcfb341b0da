import { chromium, type Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { BrowserLostError, BrowserPool, runOf, type BrowserSession } from '../../src/index.js';
import { kernel } from '../../src/services.js';
import { CdpRelay } from '../support/cdp-relay.js';
import { DRIVERS } from '../support/drivers.js';
import { ForwardProxy } from '../support/forward-proxy.js';
import { look, pagesOf, titled, useLocalPool } from '../support/local.js';

const used = useLocalPool();

/** Calls `fn` with the pages of the only browser of the pool, through a plain client. */
const lookAt = <Value>(fn: (pages: Page[]) => Promise<Value>) =>
  look(used.pool, async ({ cdp_ws_url }: BrowserSession) => {
    const browser = await chromium.connectOverCDP(cdp_ws_url);
    const value = await fn(browser.contexts()[0]!.pages());
    await browser.close();
    return value;
  });

describe.each(DRIVERS)('$name', ({ run }) => {
  it('passes a usable page, returns the value of the callback, and releases the browser', async () => {
    const { pool, local } = used;
    const before = local.stats();
    const result = await run(pool, async ({ page, session, signal }) => {
      await page.goto(titled('checkout'));
      return { title: await page.title(), id: session.session_id, aborted: signal.aborted };
    });
    const { session_id: id } = result.session;
    expect(result).toMatchObject({
      value: { title: 'checkout', id, aborted: false },
      replays: [],
      replayStatus: 'none',
      released: 'reused',
      acquireAttempts: 1,
      cleanupErrors: [],
    });
    expect(local.stats()).toMatchObject({ leased: 0, idle: 1, destroyed: before.destroyed });
    expect(local.stats().released).toBe(before.released + 1);
  });

  it('shows every frame of a page: siblings, nested ones, and those of a next document', async () => {
    const frame = (id: string, inner = '') =>
      `<iframe id=${id} srcdoc="<title>${id}</title>${inner}"></iframe>`;
    const nested = frame('b', '<iframe id=c srcdoc=c></iframe>');
    const { value } = await run(used.pool, async ({ page: any }) => {
      const page = any as unknown as Pick<Page, 'goto' | 'setContent' | 'frames'>;
      const counts: number[] = [];
      for (const html of [frame('a') + nested, frame('d') + frame('e') + frame('f')]) {
        await page.goto(titled('frames'));
        await page.setContent(html);
        counts.push(page.frames().length);
      }
      return counts;
    });
    expect(value).toEqual([4, 4]);
  });

  it('calls the callback once, and throws its own error unchanged; runOf returns the run', async () => {
    const mine = Object.freeze(new Error('mine'));
    for (const thrown of [mine, undefined]) {
      let calls = 0;
      const callback = () => {
        calls++;
        return Promise.reject(thrown);
      };
      const outcome = await run(used.pool, callback).catch((error: unknown) => ({ error }));
      expect({ ...outcome, calls }).toEqual({ error: thrown, calls: 1 });
      expect(used.local.stats().leased).toBe(0);
    }
    expect(runOf(mine)).toMatchObject({ released: 'reused', replayStatus: 'none', acquireAttempts: 1 });
    expect(runOf(mine)?.session?.session_id).toBeTypeOf('string');
  });

  it('explains a refused localhost of a browser on another machine, which exposeNetwork can reach', async () => {
    const { baseUrl, token } = used.local;
    await using relay = await CdpRelay.start((path) => decodeURIComponent(path.slice(1)));
    const hosts = { '127.0.0.1': new URL(baseUrl).port, 'browser.test': relay.port };
    await using proxy = await ForwardProxy.start({ hosts });
    const far = (url = '') => `ws://browser.test/${encodeURIComponent(url)}`;
    const grant: typeof kernel.grant = (...args) => {
      const granted = kernel.grant(...args);
      return { ...granted, cdpUrl: far(granted.cdpUrl), bidiUrl: far(granted.bidiUrl) };
    };
    const service = { ...kernel, grant };
    await using pool = new BrowserPool('test', { service, baseUrl, token, proxy: proxy.url, insecure: true });
    const failing = run(pool, ({ page }) => page.goto('http://localhost:2/'));
    await expect(failing).rejects.toThrow(/REFUSED[^]* another machine.* set exposeNetwork: 'localhost:2'/);
    expect(proxy.requested.length).toBeGreaterThan(0);
  });

  it('calls a callback that closes its browser once, and counts the browser as lost', async () => {
    let calls = 0;
    const callback = async ({ browser }: { browser: { close(): Promise<void> } }) => {
      calls++;
      await browser.close();
    };
    const error: unknown = await run(used.pool, callback).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(BrowserLostError);
    expect(error).toMatchObject({ code: 'ERR_BROWSER_LOST', reason: 'closed-by-callback' });
    expect(runOf(error)?.released).toBe('destroyed');
    expect({ calls, leased: used.local.stats().leased }).toEqual({ calls: 1, leased: 0 });
  });

  it("opens a page if the pool's browser has none, and leaves one open", async () => {
    const { pool, local } = used;
    await lookAt((pages) => Promise.all(pages.map((page) => page.close())));
    const { destroyed } = local.stats();
    const { value, released } = await run(pool, async ({ page }) => {
      await page.goto(titled('first page'));
      return page.title();
    });
    expect({ value, released }).toEqual({ value: 'first page', released: 'reused' });
    expect(await look(pool, pagesOf)).toHaveLength(1);
    const closing = await run(pool, ({ page }) => page.close());
    expect(closing.released).toBe('reused');
    expect(await look(pool, pagesOf)).toHaveLength(1);
    expect(local.stats().destroyed).toBe(destroyed);
  });

  it('does not resize the leased browser', async () => {
    const plain = await lookAt(([page]) => page!.evaluate('innerWidth'));
    for (const context of ['default', 'new'] as const) {
      const { value } = await run(used.pool, ({ page }) => page.evaluate('innerWidth'), { context });
      expect(value, context).toBe(plain);
    }
  });
});
