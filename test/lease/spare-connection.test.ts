import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { WebSocketServer } from 'ws';
import { BrowserPool, withPooledBrowser } from '../../src/index.js';
import { FakeService, reply, session } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { hasOpenSsl, selfSigned } from '../support/self-signed.js';

describe.runIf(hasOpenSsl)('while an acquire request waits', () => {
  let server: Server;
  let service: FakeService;
  let pool: BrowserPool;
  let url: string;
  /** The connections to the host of the WebSockets. */
  let connections: TLSSocket[];
  /** Responds to the acquire request. */
  let grant: () => void;

  beforeEach(async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    connections = [];
    server = createServer(selfSigned()).on('secureConnection', (socket) => connections.push(socket));
    const sockets = new WebSocketServer({ server });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    url = `wss://127.0.0.1:${(server.address() as AddressInfo).port}/?jwt=secret`;
    service = await FakeService.start();
    pool = new BrowserPool('pool', service.options);
    const json = session({ webdriver_ws_url: url });
    service.script('acquire', { status: 200, json }, (response) => {
      grant = () => reply(response, { status: 200, json });
    });
    await lease();
    expect(connections).toHaveLength(1);
    return async () => {
      await pool.close();
      await service.close();
      sockets.close();
      connections.forEach((socket) => socket.destroy());
      await once(server.close(), 'close');
    };
  });

  /** Its value is the number of connections during the lease: at its end, another one opens. */
  const lease = (options: { signal?: AbortSignal } = {}) =>
    withPooledBrowser(pool, () => connections.length, {
      connector: plainConnector,
      // A slow connect opens a second WebSocket over CDP, which must not count.
      protocol: 'bidi',
      replays: 'off',
      // Without a second WebSocket over CDP, which cleans the browser.
      release: 'reuse',
      connectAttempts: 1,
      ...options,
    });

  it('opens the connection for the WebSocket to the host of the last one, and uses it', async () => {
    const second = lease();
    await expect.poll(() => connections.length).toBe(2);
    grant();
    expect(await second).toMatchObject({ value: 2, released: 'reused' });
    // One more for the next lease, because this one was used.
    await expect.poll(() => connections.length).toBe(3);
    const third = lease();
    await expect.poll(() => service.of('acquire').length).toBe(3);
    grant();
    await third;
    await expect.poll(() => connections.length).toBe(4);
  });

  it('opens another connection if the host has closed it', async () => {
    const second = lease();
    await expect.poll(() => connections.length).toBe(2);
    const upgrades = vi.fn();
    server.once('upgrade', upgrades);
    // The client learns of it only after its upgrade request.
    connections[1]!.removeAllListeners('data').on('data', () => connections[1]!.destroy());
    grant();
    expect(await second).toMatchObject({ value: 3 });
    expect(upgrades).toHaveBeenCalledOnce();
  });

  it('does not repeat an upgrade that the host refuses', async () => {
    server.removeAllListeners('upgrade').on('upgrade', (_request, socket) => {
      socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n');
    });
    const second = lease();
    const failed = second.catch((error: unknown) => error);
    await expect.poll(() => connections.length).toBe(2);
    grant();
    expect(await failed).toMatchObject({ name: 'ConnectError', status: 403 });
    expect(connections).toHaveLength(2);
  });

  it('closes the connection with the pool', async () => {
    const controller = new AbortController();
    const second = lease({ signal: controller.signal }).catch(() => {});
    await expect.poll(() => connections.length).toBe(2);
    const closed = once(connections[1]!, 'close');
    controller.abort();
    grant();
    await second;
    await pool.close();
    await closed;
  });
});
