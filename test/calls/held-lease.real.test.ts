import { describe, expect, it } from 'vitest';
import { ConnectionDroppedError, LeaseOverError, type RunEvent } from '../../src/index.js';
import { rejection } from '../pool/support.js';
import { DRIVERS } from '../support/drivers.js';
import { FaultBench } from '../support/fault-bench.js';
import { titled, useLocalPool } from '../support/local.js';

const used = useLocalPool({ pools: [{ name: 'test', size: 2 }] });

describe.each(DRIVERS)('leaseBrowser with $name', (driver) => {
  it('detaches a lease, which attachBrowser continues with the same page', async () => {
    const { pool, local } = used;
    const before = local.stats();
    const browser = await driver.lease(pool, { name: 'agent-7' });
    await browser.page.goto(titled('half done'));
    const detached = await browser.detach();
    expect(await browser.release()).toMatchObject({ released: 'left' });
    expect(local.stats()).toMatchObject({ leased: 1, released: before.released });
    {
      await using again = await driver.attach(detached.secret, { pool });
      expect(again.session).toMatchObject({ session_id: browser.session.session_id, name: 'agent-7' });
      expect(await again.page.title()).toBe('half done');
    }
    // The browser was cleaned, also of what the earlier process opened.
    expect(local.stats()).toMatchObject({ leased: 0, destroyed: before.destroyed });
  });

  it('a call of the library after the release fails with LeaseOverError, and closing something again does not', async () => {
    const lease = await driver.lease(used.pool);
    const { page, browser } = lease;
    const other = (await browser.newPage()) as typeof page & {
      mainFrame(): typeof page;
      keyboard: { press(key: string): Promise<void> };
    };
    const frame = other.mainFrame();
    expect(await lease.release()).toMatchObject({ released: 'reused' });
    const calls = [
      async () => await page.evaluate('1'),
      async () => await other.goto(titled('late')),
      async () => await frame.evaluate('1'),
      async () => await other.keyboard.press('A'),
      async () => await browser.newPage(),
    ];
    const facts = { pool: 'test', sessionId: lease.session.session_id };
    for (const call of calls) {
      const error = await rejection(call());
      expect(error).toMatchObject({ code: 'ERR_LEASE_OVER', ...facts, cause: expect.any(Error) as Error });
      expect(error.cause).not.toBeInstanceOf(LeaseOverError);
      expect(error.stack).toContain(import.meta.filename);
    }
    await page.close().catch((error: unknown) => expect(error).not.toBeInstanceOf(LeaseOverError));
  });

  it('continues with the same page after a lost connection, and never repeats a call', async () => {
    await using bench = await FaultBench.start(used.local);
    bench.service.script('acquire', bench.grant);
    const types: string[] = [];
    const onEvent = ({ type }: RunEvent) => void types.push(type);
    await using browser = await driver.lease(bench.pool, { reconnect: 'eager', onEvent });
    await browser.use(({ page }) => page.goto(titled('before')));
    const { page } = browser;
    const count = 'globalThis.calls = (globalThis.calls ?? 0) + 1';
    const call = browser.use((lease) => lease.page.evaluate(`${count}; new Promise(() => {})`));
    const failure = call.catch((error: unknown) => error);
    // The browser executes commands in order, so the first call has reached it.
    await browser.use((lease) => lease.page.evaluate('1'));
    bench.road.lose('reset');
    expect(await failure).toBeInstanceOf(ConnectionDroppedError);
    await expect.poll(() => types).toContain('reconnected');
    expect(browser.page).not.toBe(page);
    expect(await browser.use((lease) => lease.page.title())).toBe('before');
    expect(await browser.use((lease) => lease.page.evaluate('globalThis.calls'))).toBe(1);

    // Also a connection that is not lost can be replaced.
    await browser.reconnect();
    expect(await browser.page.title()).toBe('before');
    expect(await browser.release()).toMatchObject({ released: 'reused' });
    // Released once, and no message of the client reached the browser afterwards.
    await bench.settle();
  });
});
