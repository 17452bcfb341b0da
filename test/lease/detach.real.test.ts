import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { BrowserPool, ConnectError, InvalidOptionError } from '../../src/index.js';
import { DRIVERS } from '../support/drivers.js';
import { titled, useLocalPool } from '../support/local.js';

describe.each(DRIVERS)('$name', (driver) => {
  const used = useLocalPool();

  it('detaches a lease, which attachBrowser continues with the same page', async () => {
    const { pool, local } = used;
    const before = local.stats().released;
    const browser = await driver.lease(pool, { name: 'agent-7' });
    await browser.page.goto(titled('half done'));
    const detached = await browser.detach();
    expect(await browser.release()).toMatchObject({ released: 'left' });
    expect(local.stats()).toMatchObject({ leased: 1, released: before });

    const again = await driver.attach(detached.secret, { pool });
    expect(again.session).toMatchObject({ session_id: browser.session.session_id, name: 'agent-7' });
    expect(await again.page.title()).toBe('half done');
    // The pages that the earlier process opened are unknown, so the browser is not reused.
    expect(await again.release()).toMatchObject({ released: 'destroyed' });
    expect(local.stats()).toMatchObject({ leased: 0, released: before + 1 });
  });
});

describe('a detached lease', () => {
  const used = useLocalPool({ pools: [{ name: 'test', timeoutSeconds: 90 }] });
  const driver = DRIVERS[0]!;

  it('shows its secret only through the property secret', async () => {
    const browser = await driver.lease(used.pool);
    const detached = await browser.detach();
    expect(detached).toMatchObject({ sessionId: browser.session.session_id, expiresAfter: 90_000 });
    const jwt = new URL(browser.session.cdp_ws_url).searchParams.get('jwt')!;
    expect(Buffer.from(detached.secret.split('.')[1]!, 'base64url').toString()).toContain(jwt);
    for (const shown of [
      inspect(detached, { showHidden: true, depth: 9 }),
      JSON.stringify(detached),
      `${detached}`,
    ]) {
      expect(shown).not.toContain(jwt);
      expect(shown).not.toContain(detached.secret);
    }
    expect(detached.secret).not.toContain(used.local.token);
    await (await driver.attach(detached, { pool: used.pool })).release();
  });

  it('stays leased if its browser is unreachable', async () => {
    const browser = await driver.lease(used.pool);
    const detached = await browser.detach();
    await used.pool.release(browser.session.session_id, { reuse: false });
    const error: unknown = await driver
      .attach(detached, { pool: used.pool })
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConnectError);
    expect(error).toMatchObject({ status: 401 });
  });

  it('can be attached at its own service only, so that no other service receives the token', async () => {
    const browser = await driver.lease(used.pool);
    const detached = await browser.detach();
    await using elsewhere = new BrowserPool('test', { baseUrl: 'https://pool.example', token: 'a-token-1' });
    await expect(driver.attach(detached, { pool: elsewhere })).rejects.toThrow(InvalidOptionError);
    await (await driver.attach(detached, { pool: used.pool })).release();
  });

  it.each(['', 'no lease', 'pooled-browser-lease-1.', 'pooled-browser-lease-1.e30'])(
    'cannot be read from %j',
    async (text) => {
      await expect(driver.attach(text, { pool: used.pool })).rejects.toThrow(/detach\(\)/);
    },
  );

  it('is not available from a lease that has ended', async () => {
    const browser = await driver.lease(used.pool);
    await browser.release();
    await expect(browser.detach()).rejects.toMatchObject({ code: 'ERR_LEASE_OVER' });
  });

  it('refuses options that only concern acquiring', async () => {
    const options = { pool: used.pool, acquireTimeout: 5 } as object;
    await expect(driver.attach('pooled-browser-lease-1.e30', options)).rejects.toThrow(/acquireTimeout/);
  });
});
