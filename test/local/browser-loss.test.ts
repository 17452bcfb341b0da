import { describe, expect, it } from 'vitest';
import type { LocalPoolEvent } from '../../src/local.js';
import { closed, startApi, tryWebSocket, until } from './support.js';

const events: LocalPoolEvent[] = [];
const onLog = (event: LocalPoolEvent) => void events.push(event);
const api = await startApi({ pools: [{ timeoutSeconds: 1 }], onLog });

describe('a Chromium that crashes', () => {
  it('is replaced when the browser was idle', async () => {
    await until('the browser is idle', () => api.pool.stats().idle === 1);
    const { destroyed } = api.pool.stats();
    process.kill(lastPid(), 'SIGKILL');
    await until('the browser is destroyed', () => api.pool.stats().destroyed === destroyed + 1);
    await api.release(await api.lease());
  });

  it('ends its lease: the WebSockets close, a release answers 404, another browser replaces it', async () => {
    const session = await api.lease();
    const { destroyed } = api.pool.stats();
    const sockets = await Promise.all([
      tryWebSocket(session.cdp_ws_url),
      tryWebSocket(session.webdriver_ws_url),
    ]);
    process.kill(lastPid(), 'SIGKILL');
    await Promise.all(sockets.map(({ socket }) => closed(socket)));
    await until('the browser is destroyed', () => api.pool.stats().destroyed === destroyed + 1);
    expect(await api.release(session)).toBe(404);
    const next = await api.lease();
    expect(next.session_id).not.toBe(session.session_id);
    await api.release(next);
    expect(events).toContainEqual(expect.objectContaining({ type: 'browser-destroyed', reason: 'exited' }));
  });
});

describe('a lease without a connection', () => {
  it('expires after timeout_seconds: the browser is destroyed and replaced', async () => {
    const start = performance.now();
    const session = await api.lease();
    const { expired } = api.pool.stats();
    await until('the lease has expired', () => api.pool.stats().expired === expired + 1);
    expect(performance.now() - start).toBeGreaterThan(990);
    expect(await api.release(session)).toBe(404);
    await until('the browser is replaced', () => api.pool.stats().idle === 1);
  });

  it.each(['cdp_ws_url', 'webdriver_ws_url'] as const)(
    'does not expire while its %s has a connection',
    async (url) => {
      const session = await api.lease();
      const { expired } = api.pool.stats();
      const { socket } = await tryWebSocket(session[url]);
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      expect(api.pool.stats().expired).toBe(expired);
      const start = performance.now();
      socket.close();
      await until('the lease has expired', () => api.pool.stats().expired === expired + 1);
      expect(performance.now() - start).toBeGreaterThan(500);
    },
  );

  it('does not expire after its release', async () => {
    const { expired } = api.pool.stats();
    await api.release(await api.lease());
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(api.pool.stats()).toMatchObject({ expired, idle: 1 });
  });
});

function lastPid(): number {
  const started = events.findLast((event) => event.type === 'browser-started');
  return started?.type === 'browser-started' ? started.pid : Number.NaN;
}
