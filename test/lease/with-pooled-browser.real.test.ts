import { chromium } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { BrowserLostError, CallbackTimeoutError, runOf, type RunEvent } from '../../src/index.js';
import { DRIVERS } from '../support/drivers.js';
import { look, pagesOf, titled, useLocalPool } from '../support/local.js';

describe.each(DRIVERS)('$name', ({ run, openPage }) => {
  const used = useLocalPool();

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
    for (const stage of ['acquire', 'connect', 'callback', 'cleanup', 'release', 'total'] as const) {
      expect(result.timings[stage], stage).toBeTypeOf('number');
    }
  });

  it('closes the pages that the callback opened, including pop-ups, and no others', async () => {
    const { pool } = used;
    const before = await look(pool, pagesOf);
    await run(pool, async (lease) => {
      await openPage(lease);
      await lease.page.evaluate('void open("about:blank#popup")');
    });
    expect(await look(pool, pagesOf)).toHaveLength(before.length);
  });

  it('does not resize the leased browser', async () => {
    const { pool } = used;
    const width = 'innerWidth';
    const plain = await look(pool, async ({ cdp_ws_url }) => {
      const browser = await chromium.connectOverCDP(cdp_ws_url);
      const seen = await browser.contexts()[0]!.pages()[0]!.evaluate(width);
      await browser.close();
      return seen;
    });
    for (const context of ['default', 'new'] as const) {
      const { value } = await run(pool, ({ page }) => page.evaluate(width), { context });
      expect(value, context).toBe(plain);
    }
  });

  it("opens a page if the pool's browser has none, and leaves one open", async () => {
    const { pool, local } = used;
    await look(pool, async ({ cdp_ws_url }) => {
      const browser = await chromium.connectOverCDP(cdp_ws_url);
      await Promise.all(
        browser
          .contexts()[0]!
          .pages()
          .map((page) => page.close()),
      );
      await browser.close();
    });
    const { destroyed } = local.stats();
    const { value, released } = await run(pool, async ({ page }) => {
      await page.goto(titled('first page'));
      return page.title();
    });
    expect({ value, released }).toEqual({ value: 'first page', released: 'reused' });
    expect(await look(pool, pagesOf)).toHaveLength(1);
    expect(local.stats().destroyed).toBe(destroyed);
  });

  it('keeps the browser running, with a page, when the callback closes the last page', async () => {
    const { pool } = used;
    const { released } = await run(pool, ({ page }) => page.close());
    expect(released).toBe('reused');
    expect(await look(pool, pagesOf)).toHaveLength(1);
  });

  it('opens a fresh context with context: new, and closes it afterwards', async () => {
    const { pool } = used;
    const cookie = 'document.cookie = "seen=1"; document.cookie';
    const read = 'document.cookie';
    const visit = async (script: string, context: 'default' | 'new') => {
      const result = await run(
        pool,
        async ({ page }) => {
          // The pool's own address: the page only needs an origin.
          await page.goto(`${used.local.baseUrl}/no-such-page`);
          return page.evaluate<string>(script);
        },
        { context },
      );
      return result.value;
    };
    expect(await visit(cookie, 'new')).toBe('seen=1');
    expect(await visit(read, 'new')).toBe('');
    expect(await visit(read, 'default')).toBe('');
  });

  it("throws the callback's own error unchanged, and runOf returns the run", async () => {
    const { pool, local } = used;
    const mine = Object.freeze(new Error('mine'));
    const error = await run(pool, () => Promise.reject(mine)).catch((thrown: unknown) => thrown);
    expect(error).toBe(mine);
    expect(runOf(error)).toMatchObject({ released: 'reused', replayStatus: 'none', acquireAttempts: 1 });
    expect(runOf(error)?.session?.session_id).toBeTypeOf('string');
    expect(local.stats().leased).toBe(0);
  });

  it('rethrows even undefined', async () => {
    const outcome = await run(used.pool, () => Promise.reject(undefined)).then(
      () => 'resolved',
      (error: unknown) => ({ error }),
    );
    expect(outcome).toEqual({ error: undefined });
    expect(used.local.stats().leased).toBe(0);
  });

  it('calls the callback once, and counts a run that closed its browser as lost', async () => {
    const { pool, local } = used;
    let calls = 0;
    const error = await run(pool, async ({ browser }) => {
      calls++;
      await browser.close();
    }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(BrowserLostError);
    expect(error).toMatchObject({ code: 'ERR_BROWSER_LOST', reason: 'closed-by-callback' });
    expect(runOf(error)?.released).toBe('destroyed');
    expect(calls).toBe(1);
    expect(local.stats().leased).toBe(0);
  });

  it('rejects when the callback exceeds its timeout, and destroys the browser that it may still use', async () => {
    const { pool, local } = used;
    let reason: unknown;
    const error = await run(
      pool,
      ({ signal }) => {
        signal.addEventListener('abort', () => (reason = signal.reason));
        return new Promise(() => {});
      },
      { timeout: 200 },
    ).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(CallbackTimeoutError);
    expect(error).toMatchObject({ timeout: 200 });
    expect(reason).toBe(error);
    expect(runOf(error)?.released).toBe('destroyed');
    expect(local.stats().leased).toBe(0);
  });

  it("rejects with the reason of the caller's signal, and releases the browser", async () => {
    const { pool, local } = used;
    const caller = new AbortController();
    const reason = new Error('stop');
    const error = await run(
      pool,
      () => {
        caller.abort(reason);
        return new Promise(() => {});
      },
      { signal: caller.signal },
    ).catch((thrown: unknown) => thrown);
    expect(error).toBe(reason);
    // On a busy machine, an aborted call rejects before its end.
    await expect.poll(() => runOf(error)).toBeDefined();
    expect(runOf(error)?.released).toBe('destroyed');
    expect(local.stats().leased).toBe(0);
  });

  it('emits every step, in order', async () => {
    const events: RunEvent[] = [];
    await run(used.pool, () => {}, { onEvent: (event) => events.push(event) });
    // A slow connect closes such pages.
    const types = events.map(({ type }) => type).filter((type) => type !== 'unresponsive-pages-closed');
    expect(types.slice(0, 6)).toEqual([
      'acquiring',
      'acquired',
      'connecting',
      'connected',
      'callback-started',
      'callback-ended',
    ]);
    expect(types.slice(6, 8).toSorted()).toEqual(['cleaned-up', 'replays']);
    expect(types.slice(8)).toEqual(['released', 'ended']);
    expect(new Set(events.map(({ run: number }) => number)).size).toBe(1);
    expect(events.every(({ pool }) => pool === 'test')).toBe(true);
    const times = events.map(({ elapsed }) => elapsed);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it('releases the browser as the option release says', async () => {
    const { pool, local } = used;
    const destroyed = await run(pool, () => {}, { release: 'destroy' });
    expect(destroyed.released).toBe('destroyed');
    const chosen = await run(pool, () => {}, { release: ({ healthy }) => (healthy ? 'destroy' : 'reuse') });
    expect(chosen.released).toBe('destroyed');
    const left = await run(pool, () => {}, { release: 'leave' });
    expect(left.released).toBe('left');
    expect(local.stats().leased).toBe(1);
    await pool.release(left.session.session_id);
  });
});
