import { describe, expect, it } from 'vitest';
import type { LocalPoolStats } from '../../src/local.js';
import { ask, closed, drive, startApi, titled, tryWebSocket, until } from './support.js';

/** The numbers of the pool `slow` when its last release was processed. */
let afterRelease: LocalPoolStats | undefined;
const api = await startApi({
  pools: [{ size: 2 }, { name: 'slow', fillRatePerMinute: 6000 }],
  onLog: (event) => {
    const isRelease = event.type === 'request' && event.path === '/browser_pools/slow/release';
    if (isRelease) afterRelease = api.pool.stats('slow');
  },
});
await until('all browsers have started', () => api.pool.stats().idle === 3, 120_000);

describe('release with reuse', () => {
  it('keeps the browser as it is: cookies and tabs stay', async () => {
    const [one, two] = [await api.lease(), await api.lease()];
    await drive(one, async (page) => {
      await (await page.context().newPage()).goto(titled('left open'));
      await page.context().addCookies([{ name: 'a', value: 'b', url: 'https://example.com' }]);
    });
    await api.release(one, true);
    const again = await api.lease();
    expect(again.session_id).toBe(one.session_id);
    await drive(again, async (page) => {
      const context = page.context();
      const titles = context.pages().map((one) => one.title());
      expect(await Promise.all(titles)).toContain('left open');
      expect(await context.cookies()).toMatchObject([{ name: 'a', value: 'b' }]);
    });
    await Promise.all([api.release(again), api.release(two)]);
  });

  it('closes all WebSockets of the lease', async () => {
    const session = await api.lease();
    const { socket: cdp } = await tryWebSocket(session.cdp_ws_url);
    const { socket: bidi } = await tryWebSocket(session.webdriver_ws_url);
    expect(await ask(cdp, { id: 1, method: 'Browser.getVersion' })).toHaveProperty('result');
    const start = { id: 1, method: 'session.new', params: { capabilities: {} } };
    expect(await ask(bidi, start)).toMatchObject({ type: 'success' });
    await api.release(session);
    await Promise.all([closed(cdp), closed(bidi)]);
  });
});

describe('release without reuse', () => {
  it('destroys the browser and starts another browser', async () => {
    const before = api.pool.stats('default');
    const session = await api.lease();
    expect(await api.release(session, false)).toBe(204);
    expect(await api.release(session)).toBe(404);
    expect((await api.call('GET', `/browsers/${session.session_id}/replays`)).status).toBe(404);
    await until('the browser is replaced', () => api.pool.stats('default').idle === 2);
    expect(api.pool.stats('default').destroyed).toBe(before.destroyed + 1);
  });

  it("starts the new browser at the pool's fill rate", async () => {
    const session = await api.lease({}, 'slow');
    const start = performance.now();
    await api.release(session, false);
    expect(afterRelease).toMatchObject({ idle: 0, starting: 0 });
    await until('the browser is replaced', () => api.pool.stats('slow').idle === 1);
    expect(performance.now() - start).toBeGreaterThan(990);
  });
});

it('destroys the idle browsers on a flush, keeps the leased browser, and refills the pool', async () => {
  const session = await api.lease();
  const { destroyed } = api.pool.stats('default');
  expect(await api.call('POST', '/browser_pools/default/flush')).toMatchObject({ status: 204, body: {} });
  expect(api.pool.stats('default')).toMatchObject({ idle: 0, leased: 1, destroyed: destroyed + 1 });
  const { outcome, socket } = await tryWebSocket(session.cdp_ws_url);
  expect(outcome).toBe('open');
  socket.terminate();
  await until('the pool is full', () => api.pool.stats('default').idle === 1);
  expect(await api.release(session)).toBe(204);
});

it('destroys a browser that is deleted, leased or idle', async () => {
  for (const isLeased of [true, false]) {
    const session = await api.lease();
    if (!isLeased) await api.release(session);
    const path = `/browsers/${session.session_id}`;
    expect((await api.call('DELETE', path)).status).toBe(204);
    expect((await api.call('DELETE', path)).status).toBe(404);
    expect(await api.release(session)).toBe(404);
    await until('the browser is replaced', () => api.pool.stats('default').idle === 2);
  }
});
