import { request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { WebSocket } from 'ws';
import { startLocalPool } from '../../src/local.js';
import type { LocalPoolChaos, LocalPoolFault, LocalPoolOptions } from '../../src/local.js';
import { ask, closed, leaseConnected, startApi, tryWebSocket, until, type Api } from './support.js';

/** A pool of one browser, whose leases expire after a second without a connection. */
async function start(chaos: LocalPoolChaos, pools: LocalPoolOptions['pools'] = [{ timeoutSeconds: 1 }]) {
  const api = await startApi({ pools, chaos });
  onTestFinished(() => api.pool.close());
  return api;
}

/** Sends a request, and returns what arrives of the response. @param enough Ends the wait for a response. */
function exchange(api: Api, method: string, path: string, enough?: () => Promise<unknown>) {
  const { port } = new URL(api.pool.baseUrl);
  return new Promise<{ status?: number | undefined; text: string; end: string }>((resolve, reject) => {
    let text = '';
    let status: number | undefined;
    const settle = (end: string) => resolve({ ...(status !== undefined && { status }), text, end });
    const headers = { authorization: `Bearer ${api.pool.token}` };
    const sent = httpRequest({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
      status = response.statusCode;
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.once('end', () => settle('complete'));
      response.once('error', () => settle('cut off'));
    });
    sent.once('error', (error: NodeJS.ErrnoException) => settle(error.code ?? error.message));
    sent.end();
    enough?.().then(() => (settle('nothing'), sent.destroy()), reject);
  });
}

describe('faults of requests', () => {
  it('answers with a status, and does not process the request', async () => {
    const fault = { fault: 'status', at: 'acquire', nth: 1, status: 503 } as const;
    const api = await start({ seed: 1, faults: [fault] });
    expect(await api.acquire()).toMatchObject({ status: 503, body: { code: 'chaos' } });
    expect(api.pool.stats()).toMatchObject({ granted: 0, idle: 1 });
    expect(api.eventsOf('chaos')).toEqual([{ type: 'chaos', seed: 1, ...fault }]);
    expect((await api.acquire()).status).toBe(200);
  });

  it.each([
    ['resetBefore', 0, { text: '', end: 'ECONNRESET' }],
    ['resetAfter', 1, { text: '', end: 'ECONNRESET' }],
    ['truncate', 1, { status: 200, text: expect.stringContaining('"session_id"'), end: 'cut off' }],
    ['noAnswer', 1, { text: '', end: 'nothing' }],
  ] as const)('%s: leases granted: %i', async (fault, granted, outcome) => {
    const api = await start({ faults: [{ fault, at: 'acquire', nth: 1 }] });
    const enough = async () => {
      await until('the lease is granted', () => api.pool.stats().granted === 1);
      await sleep(500);
    };
    const wait = fault === 'noAnswer' ? enough : undefined;
    expect(await exchange(api, 'POST', '/browser_pools/default/acquire', wait)).toEqual(outcome);
    expect(api.pool.stats().granted).toBe(granted);
    // The service does not learn that its answer is lost: the lease ends because nothing connects.
    if (granted > 0) await expect.poll(() => api.pool.stats().expired).toBe(1);
    expect((await api.acquire({ acquire_timeout_seconds: 60 })).status).toBe(200);
  });

  it('processes a request immediately and answers later, or resets an answer without a body', async () => {
    const api = await start(
      {
        faults: [
          { fault: 'delay', at: 'release', nth: 1, milliseconds: 700 },
          { fault: 'truncate', at: 'flush', nth: 1 },
        ],
      },
      [{}],
    );
    const session = await api.lease();
    let isAnswered = false;
    const release = api.release(session).finally(() => (isAnswered = true));
    await expect.poll(() => api.pool.stats().released).toBe(1);
    expect(isAnswered).toBe(false);
    expect(await release).toBe(204);
    const cut = await exchange(api, 'POST', '/browser_pools/default/flush');
    expect(cut).toEqual({ text: '', end: 'ECONNRESET' });
    expect(api.pool.stats().destroyed).toBe(1);
  });

  it('leaves the pages and requests without the token alone', async () => {
    const api = await start({ faults: { status: 1 } });
    expect((await fetch(api.pool.dashboardUrl)).status).toBe(200);
    expect(await api.status('/browser_pools/default')).toBe(401);
    expect(api.eventsOf('chaos')).toEqual([]);
    expect((await api.call('GET', '/browser_pools/default')).body.code).toBe('chaos');
  });
});

describe('faults of WebSockets', () => {
  it('refuses an upgrade, leaves one unanswered, resets a WebSocket, and mutes one', async () => {
    const list = [
      { fault: 'refuseUpgrade', status: 503 },
      { fault: 'noUpgrade' },
      { fault: 'resetSocket', milliseconds: 2_000 },
      { fault: 'muteSocket', milliseconds: 2_000 },
    ] as const;
    const faults = list.map((one, index) => ({ ...one, at: 'socket' as const, nth: index + 1 }));
    const api = await start({ faults }, [{}, { name: 'brief', timeoutSeconds: 2 }]);
    const url = (await api.lease()).cdp_ws_url;
    expect((await tryWebSocket(url)).outcome).toBe(503);
    const unanswered = tryWebSocket(url).then(({ outcome }) => outcome);
    expect(await Promise.race([unanswered, sleep(300, 'no answer')])).toBe('no answer');
    const third = await tryWebSocket(url);
    await expectAnswer(third.socket);
    await closed(third.socket);
    const fourth = await leaseConnected(api, 'brief');
    await expectAnswer(fourth.socket);
    // Without a connection in use, the lease expires.
    await expect
      .poll(() => api.pool.stats('brief'))
      .toMatchObject({ leased: 0, expired: api.pool.stats().granted - 1 });
    await closed(fourth.socket);
  });

  /** On a busy machine, the fault may come before the answer. */
  async function expectAnswer(socket: WebSocket): Promise<void> {
    const asked = ask(socket, { id: 1, method: 'Browser.getVersion' });
    expect(await asked.catch(() => ({ result: {} }))).toHaveProperty('result');
  }
});

it('kills the Chromium of a lease, and lets a lease expire', async () => {
  const faults = (['killBrowser', 'expireLease'] as const).map((fault, index) => ({
    fault,
    at: 'lease' as const,
    nth: index + 1,
    milliseconds: 100,
  }));
  const api = await start({ faults }, [{}]);
  for (const reason of ['exited', 'inactive']) {
    const { socket, outcome } = await tryWebSocket((await api.lease()).cdp_ws_url);
    // On a busy machine, the fault may come before the WebSocket.
    if (outcome === 'open') await closed(socket);
    await expect.poll(() => api.eventsOf('browser-destroyed').at(-1)).toMatchObject({ reason });
  }
  expect(api.pool.stats()).toMatchObject({ granted: 2, released: 0, expired: 1, destroyed: 2 });
  await api.release(await api.lease());
});

it('chooses the faults by the seed, and can repeat the logged faults as a list', async () => {
  const faultsOf = async (chaos: LocalPoolChaos): Promise<LocalPoolFault[]> => {
    const api = await start(chaos);
    // In parallel: the choice depends on the number of the request only.
    await Promise.all(Array.from({ length: 60 }, () => exchange(api, 'GET', '/browser_pools/default')));
    return api.eventsOf('chaos').map(({ type: _type, seed: _seed, ...fault }) => fault);
  };
  const rates = { status: 0.3, resetBefore: 0.2 };
  const once = await faultsOf({ seed: 5, faults: rates });
  expect(await faultsOf({ seed: 5, faults: rates })).toEqual(once);
  expect(await faultsOf({ seed: 6, faults: rates })).not.toEqual(once);
  expect(await faultsOf({ faults: once })).toEqual(once);
  // 60 requests at a rate of 0.5.
  expect(once.length).toBeGreaterThan(15);
  expect(once.length).toBeLessThan(45);
  expect(new Set(once.map(({ fault }) => fault))).toEqual(new Set(['status', 'resetBefore']));
});

it.each([
  [{ faults: 'all' }, 'chaos.faults must be rates by fault, or an array of faults.'],
  [{ faults: { delay: 2 } }, 'chaos.faults.delay must be a number from 0 to 1, not 2.'],
  [
    { faults: { killBrowser: 0.7, expireLease: 0.6 } },
    'The rates of killBrowser, expireLease must not add up to more than 1, not 1.30.',
  ],
  [
    { faults: [{ fault: 'killBrowser', at: 'acquire', nth: 1 }] },
    "chaos.faults[0]: killBrowser cannot happen at 'acquire'. Possible there: status, delay, resetBefore, resetAfter, truncate, noAnswer.",
  ],
  [
    { faults: [{ fault: 'status', at: 'acquire', nth: 0 }] },
    'chaos.faults[0].nth must be a whole number, 1 or more, not 0.',
  ],
])('refuses %j before anything starts', async (chaos, message) => {
  await expect(startLocalPool({ chaos: chaos as object })).rejects.toThrow(message);
});
