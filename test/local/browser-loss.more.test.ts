import { describe, expect, it } from 'vitest';
import type { LocalPoolStats } from '../../src/local.js';
import { closed, leaseConnected, startApi, tryWebSocket, until } from './support.js';

const api = await startApi({ pools: [{}, { name: 'brief', timeoutSeconds: 2 }] });

describe('a Chromium that crashes', () => {
  it('is replaced when the browser was idle', async () => {
    await until('the browser is idle', () => api.pool.stats('default').idle === 1);
    const { destroyed } = api.pool.stats('default');
    process.kill(lastPid(), 'SIGKILL');
    await until('the browser is destroyed', () => api.pool.stats('default').destroyed === destroyed + 1);
    await api.release(await api.lease());
  });

  it('ends its lease: the WebSockets close, a release answers 404, another browser replaces it', async () => {
    const session = await api.lease();
    const { destroyed } = api.pool.stats('default');
    const urls = [session.cdp_ws_url, session.webdriver_ws_url];
    const sockets = await Promise.all(urls.map((url) => tryWebSocket(url)));
    expect(sockets.map(({ outcome }) => outcome)).toEqual(['open', 'open']);
    process.kill(lastPid(), 'SIGKILL');
    await Promise.all(sockets.map(({ socket }) => closed(socket)));
    await until('the browser is destroyed', () => api.pool.stats('default').destroyed === destroyed + 1);
    expect(await api.release(session)).toBe(404);
    const next = await api.lease();
    expect(next.session_id).not.toBe(session.session_id);
    await api.release(next);
    const exited = { reason: 'exited', sessionId: session.session_id };
    expect(api.eventsOf('browser-destroyed')).toContainEqual(expect.objectContaining(exited));
  });
});

it('ends a lease without a connection for timeout_seconds: the browser is destroyed and replaced', async () => {
  const { socket, session } = await leaseConnected(api, 'brief');
  const { expired } = brief();
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect(brief()).toMatchObject({ expired, leased: 1 });
  const start = performance.now();
  socket.close();
  await until('the lease has expired', () => brief().expired === expired + 1);
  expect(performance.now() - start).toBeGreaterThan(1_000);
  expect(await api.release(session)).toBe(404);
  await until('the browser is replaced', () => brief().idle === 1);
});

function brief(): LocalPoolStats {
  return api.pool.stats('brief');
}

/** Of the browser of the default pool. */
function lastPid(): number {
  return api.eventsOf('browser-started').findLast(({ pool }) => pool === 'default')!.pid;
}
