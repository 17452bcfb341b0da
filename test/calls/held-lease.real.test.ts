import { describe, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { ConnectionDroppedError, LeaseOverError, type RunEvent } from '../../src/index.js';
import { attachBrowser, leaseBrowser } from '../../src/playwright.js';
import { rejection } from '../pool/support.js';
import { DRIVERS } from '../support/drivers.js';
import { FaultBench } from '../support/fault-bench.js';
import { titled, useLocalPool } from '../support/local.js';
import { useSite } from '../support/site.js';

const used = useLocalPool({ pools: [{ name: 'test', size: 2 }] });
const site = useSite(({ headers }, response) => {
  if (headers.authorization === undefined) response.writeHead(401, { 'www-authenticate': 'Basic realm="a"' });
  response.end();
});

describe.each(DRIVERS)('leaseBrowser with $name', (driver) => {
  it('detaches a lease, which attachBrowser continues with the same page', async () => {
    const { pool, local } = used;
    const before = local.stats();
    const lease = await driver.lease(pool, { name: 'agent-7' });
    await lease.page.goto(titled('half done'));
    const detached = await lease.detach();
    expect(await lease.release()).toMatchObject({ released: 'left' });
    expect(local.stats()).toMatchObject({ leased: 1, released: before.released });
    {
      await using again = await driver.attach(detached.secret, { pool });
      expect(again.session).toMatchObject({ session_id: lease.session.session_id, name: 'agent-7' });
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
    await using lease = await driver.lease(bench.pool, { reconnect: 'eager', onEvent });
    await lease.use(({ page }) => page.goto(titled('before')));
    const { page: first } = lease;
    const count = 'globalThis.calls = (globalThis.calls ?? 0) + 1';
    const call = lease.use(({ page }) => page.evaluate(`${count}; new Promise(() => {})`));
    const failure = call.catch((error: unknown) => error);
    // The browser executes commands in order, so the first call has reached it.
    await lease.use(({ page }) => page.evaluate('1'));
    bench.road.lose('reset');
    expect(await failure).toBeInstanceOf(ConnectionDroppedError);
    await expect.poll(() => types).toContain('reconnected');
    expect(lease.page).not.toBe(first);
    expect(await lease.use(({ page }) => page.title())).toBe('before');
    expect(await lease.use(({ page }) => page.evaluate('globalThis.calls'))).toBe(1);

    // Also a connection that is not lost can be replaced.
    await lease.reconnect();
    expect(await lease.page.title()).toBe('before');
    expect(await lease.release()).toMatchObject({ released: 'reused' });
    // Released once, and no message of the client reached the browser afterwards.
    await bench.settle();
  });
});

it.each<[what: string, use: (page: Page) => Promise<unknown>]>([
  ['an HTTP login', (page) => page.goto(site.url.replace('//', '//user:secret@'))],
  [
    'another screen',
    async (page) => {
      const client = await page.context().newCDPSession(page);
      await client.send('Emulation.addScreen', { left: 3000, top: 0, width: 640, height: 480 });
    },
  ],
])(
  'a browser with %s of a lease that was detached is destroyed by the one that continues',
  async (what, use) => {
    const lease = await leaseBrowser(used.pool);
    await use(lease.page);
    const { secret } = await lease.detach();
    const again = await attachBrowser(secret, { pool: used.pool });
    const { released, cleanupErrors } = await again.release();
    expect(released).toBe('destroyed');
    expect(cleanupErrors.map(({ message, cause }) => `${message} ${String(cause)}`).join()).toContain(what);
  },
);
