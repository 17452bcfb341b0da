import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { WebSocket } from 'ws';
import { endpointOf } from '../../connect/endpoint.js';
import { Socket } from '../../connect/socket.js';
import type { BrowserSession } from '../../service/wire.js';

/** An address on this machine that leads to a leased browser, as often as someone connects, until it is closed. */
export interface LocalEndpoint extends AsyncDisposable {
  /** Its path is secret enough to keep web pages out, and worth nothing once this is closed. */
  readonly url: string;
}

export async function openLocalEndpoint(session: BrowserSession, baseUrl: string): Promise<LocalEndpoint> {
  const target = endpointOf(session, 'cdp', baseUrl);
  const { WebSocketServer } = await import('ws');
  const closed = new AbortController();
  const path = `/${randomUUID()}`;
  const server = new WebSocketServer({
    host: '127.0.0.1',
    port: 0,
    path,
    perMessageDeflate: false,
    skipUTF8Validation: true,
    maxPayload: 0,
  });
  server.on('connection', (client) => void join(client, target, closed.signal));
  await once(server, 'listening');
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    [Symbol.asyncDispose]: async () => {
      closed.abort();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Joins a client to the browser by a websocket of its own: each client is one of its own to the browser, too. */
async function join(client: WebSocket, target: string, closed: AbortSignal): Promise<void> {
  const end = () => client.terminate();
  closed.addEventListener('abort', end, { once: true });
  client.on('error', () => {});
  client.once('close', () => closed.removeEventListener('abort', end));
  // What it sends before the browser is there waits in its socket.
  client.pause();
  try {
    const socket = await Socket.open(target, closed);
    socket.onMessage = (data, isBinary) => client.send(data, { binary: isBinary });
    client.on('message', (data, isBinary) => socket.send(data, isBinary));
    client.once('close', () => socket.close('closed-by-us'));
    if (client.readyState !== client.OPEN) socket.close('closed-by-us');
    void socket.ended.then(end);
  } catch {
    client.close(1011, 'The browser could not be reached');
  } finally {
    client.resume();
  }
}
