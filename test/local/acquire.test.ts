import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { send } from '../../src/local/http/answer.js';
import { silentUrl, startApi, titled, until } from './support.js';

const api = await startApi({
  pools: [{ size: 1 }, { name: 'other' }, { name: 'slow', fillRatePerMinute: 6000 }],
});
const quirky = await startApi({
  quirks: { unavailableStatus: 429, answersAtOnce: true, nameConflictStatus: 422, keepsSessionId: false },
});

describe('waiting', () => {
  it('serves those who came first, first', async () => {
    const holder = await api.lease();
    const served: number[] = [];
    const waiters: Promise<void>[] = [];
    for (const number of [1, 2, 3]) {
      const waiter = api.lease().then(async (session) => {
        served.push(number);
        await api.release(session);
      });
      waiters.push(waiter);
      await until('it waits', () => api.pool.stats('default').waiting === number);
    }
    expect(served).toEqual([]);
    await api.release(holder);
    await Promise.all(waiters);
    expect(served).toEqual([1, 2, 3]);
  });

  it('ends with 204 and an empty body when the time is up', async () => {
    const holder = await api.lease();
    const start = performance.now();
    const reply = await api.acquire({ acquire_timeout_seconds: 1 });
    expect(reply).toMatchObject({ status: 204, body: {} });
    expect(performance.now() - start).toBeGreaterThan(990);
    expect(api.pool.stats().waiting).toBe(0);
    await api.release(holder);
  });

  it('does not happen with 0 seconds', async () => {
    const holder = await api.lease({ acquire_timeout_seconds: 0 });
    const start = performance.now();
    expect((await api.acquire({ acquire_timeout_seconds: 0 })).status).toBe(204);
    // The default wait would be a minute.
    expect(performance.now() - start).toBeLessThan(10_000);
    await api.release(holder);
  });

  it('lasts by default as long as the pool takes to fill at its rate', async () => {
    const holder = await api.lease({}, 'slow');
    const start = performance.now();
    expect((await api.acquire({}, 'slow')).status).toBe(204);
    expect(performance.now() - start).toBeGreaterThan(990);
    await api.release(holder);
  });

  it('ends when the client goes away, and the browser goes to the next one', async () => {
    const holder = await api.lease();
    const gone = new AbortController();
    const aborted = api.acquire({}, 'default', gone.signal).catch(() => 'aborted');
    await until('it waits', () => api.pool.stats().waiting === 1);
    const next = api.lease();
    await until('both wait', () => api.pool.stats().waiting === 2);
    gone.abort();
    expect(await aborted).toBe('aborted');
    await until('it has left', () => api.pool.stats().waiting === 1);
    await api.release(holder);
    await api.release(await next);
    expect(api.pool.stats('default')).toMatchObject({ idle: 1, leased: 0 });
  });
});

describe('a grant that its client never hears of', () => {
  it('is undone when the client goes away while the start_url loads', async () => {
    const { granted } = api.pool.stats();
    const gone = new AbortController();
    const start_url = await silentUrl();
    const aborted = api.acquire({ start_url, name: 'ghost' }, 'default', gone.signal).catch(() => 'aborted');
    await until('it is granted', () => api.pool.stats('default').leased === 1);
    gone.abort();
    expect(await aborted).toBe('aborted');
    await until('it is back', () => api.pool.stats('default').idle === 1, 1_000);
    expect(api.pool.stats().granted).toBe(granted);
  });

  it('is undone when the socket is closed before the response is sent', async () => {
    const undelivered = new Promise<void>((resolve) => {
      const server = createServer((request, response) => {
        request.socket.destroy();
        void send(response, { status: 200, body: {}, onUndelivered: resolve });
        server.close();
      }).listen(0, '127.0.0.1', () => {
        const { port } = server.address() as AddressInfo;
        fetch(`http://127.0.0.1:${port}`).catch(() => {});
      });
    });
    await undelivered;
  });
});

describe('the name of a lease', () => {
  it('is taken as long as a lease of any pool has it', async () => {
    const session = await api.lease({ name: 'mine' });
    const reply = await api.acquire({ name: 'mine' }, 'other');
    expect(reply).toMatchObject({
      status: 409,
      body: { code: 'conflict', details: [{ code: 'name_in_use' }] },
    });
    await api.release(session);
    const again = await api.lease({ name: 'mine' }, 'other');
    expect(again.name).toBe('mine');
    await api.release(again);
  });

  it('goes with the lease: the next one has neither name nor tags', async () => {
    const session = await api.lease({ name: 'mine', tags: { a: 'b' } });
    await api.release(session);
    const next = await api.lease();
    expect(next.session_id).toBe(session.session_id);
    expect(next.created_at).toBe(session.created_at);
    expect(next).not.toHaveProperty('name');
    expect(next).not.toHaveProperty('tags');
    await api.release(next);
  });

  it('is refused to the second of two who wait with the same one', async () => {
    const holders = [await api.lease(), await api.lease({}, 'other')] as const;
    const replies = [api.acquire({ name: 'twin' }), api.acquire({ name: 'twin' }, 'other')] as const;
    await until('both wait', () => api.pool.stats().waiting === 2);
    await api.release(holders[0]);
    const first = await replies[0];
    expect(first).toMatchObject({ status: 200, body: { name: 'twin' } });
    await api.release(holders[1]);
    expect(await replies[1]).toMatchObject({ status: 409, body: { code: 'conflict' } });
    expect(api.pool.stats('other').idle).toBe(1);
    await api.call('POST', '/browser_pools/default/release', { body: first.body });
  });
});

describe('start_url', () => {
  it('does not fail the lease when it cannot be loaded', async () => {
    const start_url = 'http://127.0.0.1:1/';
    const session = await api.lease({ start_url });
    expect(session.start_url).toBe(start_url);
    await api.release(session);
  });

  it('does not hold up the lease when it is slow', async () => {
    const start = performance.now();
    const session = await api.lease({ start_url: await silentUrl() });
    expect(performance.now() - start).toBeLessThan(15_000);
    await api.release(session, false);
  });

  it('belongs to one lease', async () => {
    const session = await api.lease({ start_url: titled('one') });
    await api.release(session);
    const next = await api.lease();
    expect(next).not.toHaveProperty('start_url');
    await api.release(next);
  });
});

describe('quirks', () => {
  it('answers at once, with another status, when no browser is idle', async () => {
    const session = await quirky.lease({ name: 'mine' });
    const start = performance.now();
    const reply = await quirky.acquire({ acquire_timeout_seconds: 60 });
    expect(reply).toMatchObject({ status: 429, body: { code: 'no_browser_available' } });
    expect(performance.now() - start).toBeLessThan(30_000);
    await quirky.release(session);
  });

  it('refuses a name that is taken with 422', async () => {
    const session = await quirky.lease({ name: 'mine' });
    expect((await quirky.acquire({ name: 'mine' })).status).toBe(422);
    await quirky.release(session);
  });

  it('gives each lease a session of its own', async () => {
    const session = await quirky.lease();
    await quirky.release(session);
    const next = await quirky.lease();
    expect(next.session_id).not.toBe(session.session_id);
    await quirky.release(next);
    expect(quirky.pool.stats()).toMatchObject({ destroyed: 0, idle: 1 });
  });
});
