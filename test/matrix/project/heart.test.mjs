// Tests of every supported version. They run with `node --test` in a project with the packed package, see matrix.ts.
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { AcquireTimeoutError, BrowserLostError, BrowserPool, runOf } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import * as playwright from 'pooled-browser/playwright';
import * as puppeteer from 'pooled-browser/puppeteer';

const browser = process.env.MATRIX_BROWSER ?? 'chromium';
/** Firefox has only BiDi. */
const WAYS = [
  ['Playwright over CDP', playwright, 'cdp'],
  ['Puppeteer over CDP', puppeteer, 'cdp'],
  ['Puppeteer over BiDi', puppeteer, 'bidi'],
].filter(([, , protocol]) => browser === 'chromium' || protocol === 'bidi');
const PAGE = 'data:text/html,<title>heart</title>';

const local = await startLocalPool({ browser });
const pool = new BrowserPool('default', { baseUrl: local.baseUrl, token: local.token });
after(async () => {
  await pool.close();
  await local.close();
});

for (const [way, library, protocol] of WAYS) {
  const options = protocol === 'bidi' ? { protocol } : {};
  const { withPooledBrowser, leaseBrowser, mapPooledBrowsers } = library;

  describe(way, () => {
    it('returns the value, reuses the browser, and lists the replays', async () => {
      const work = async ({ page }) => {
        await page.goto(PAGE);
        return page.title();
      };
      const run = await withPooledBrowser(pool, work, options);
      assert.deepEqual([run.value, run.released, run.replays], ['heart', 'reused', []]);
    });

    it("rethrows the callback's error unchanged, after the release", async () => {
      const mine = new Error('mine');
      const fail = () => Promise.reject(mine);
      await assert.rejects(withPooledBrowser(pool, fail, options), (error) => error === mine);
      assert.equal(runOf(mine).released, 'reused');
    });

    it('rejects with the reason of an abort, and releases', async () => {
      const caller = new AbortController();
      const reason = new Error('enough');
      const work = ({ page }) => {
        caller.abort(reason);
        return page.evaluate('new Promise(() => {})');
      };
      const run = withPooledBrowser(pool, work, { ...options, signal: caller.signal });
      await assert.rejects(run, (error) => error === reason);
    });

    it('ends with BrowserLostError when the browser is killed', async () => {
      let pid;
      const onLog = (event) => {
        if (event.type === 'browser-started') ({ pid } = event);
      };
      const fragile = await startLocalPool({ browser, pools: [{ name: 'default', size: 1 }], onLog });
      const service = new BrowserPool('default', { baseUrl: fragile.baseUrl, token: fragile.token });
      const work = ({ page }) => {
        process.kill(pid, 'SIGKILL');
        return page.evaluate('new Promise(() => {})').catch(() => 'ignored');
      };
      await assert.rejects(withPooledBrowser(service, work, options), BrowserLostError);
      await service.close();
      await fragile.close();
    });

    it('ends with AcquireTimeoutError when no browser is free', async () => {
      const held = await leaseBrowser(pool, options);
      await assert.rejects(leaseBrowser(pool, { ...options, acquireTimeout: 300 }), AcquireTimeoutError);
      assert.equal(await held.use(({ page }) => page.evaluate('6 * 7')), 42);
      await held.release();
    });

    it('maps inputs', async () => {
      const values = [];
      const task = ({ page, input }) => page.evaluate(`${input} * 2`);
      for await (const outcome of mapPooledBrowsers(pool, [1, 2, 3], task, options))
        values.push(outcome.value);
      assert.deepEqual(
        values.toSorted((a, b) => a - b),
        [2, 4, 6],
      );
    });
  });
}

it('has released every browser', async () => {
  await pool.close();
  const { leased, granted, released } = local.stats();
  assert.equal(leased, 0);
  assert.ok(granted >= released && released > 0);
});
