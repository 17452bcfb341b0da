import { describe, expect, it } from 'vitest';
import { BrowserLostError } from '../../src/index.js';
import { DRIVERS } from '../support/drivers.js';
import { titled, useLocalPool } from '../support/local.js';

describe.each(DRIVERS)('$name', ({ lease }) => {
  const used = useLocalPool();

  it('leases a browser until release(), and releases it once', async () => {
    const { pool, local } = used;
    const browser = await lease(pool);
    await browser.page.goto(titled('agent'));
    expect(await browser.page.title()).toBe('agent');
    expect(local.stats().leased).toBe(1);
    const before = local.stats().released;
    const [first, second] = await Promise.all([browser.release(), browser.release()]);
    expect(first).toBe(second);
    expect(first).toMatchObject({ released: 'reused', replayStatus: 'none', acquireAttempts: 1 });
    expect(local.stats().released).toBe(before + 1);
  });

  it('releases the browser at the end of the block with await using', async () => {
    const { pool, local } = used;
    {
      await using browser = await lease(pool);
      expect(browser.session.session_id).toBeTypeOf('string');
      expect(local.stats().leased).toBe(1);
    }
    expect(local.stats().leased).toBe(0);
  });

  it('aborts its signal when the browser is lost', async () => {
    const { pool, local } = used;
    const browser = await lease(pool);
    const aborted = new Promise((resolve) => browser.signal.addEventListener('abort', resolve));
    // The service ends the session.
    await pool.release(browser.session.session_id, { reuse: false });
    await aborted;
    expect(browser.signal.reason).toBeInstanceOf(BrowserLostError);
    expect(await browser.release()).toMatchObject({ released: 'destroyed' });
    expect(local.stats().leased).toBe(0);
  });
});
