import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { WebSocket, WebSocketServer } from 'ws';
import { loadWs } from '../shared/lazy.js';
import { join } from './relay.js';
import type { Socket, SocketEnd } from './socket.js';

/** A WebSocket URL on loopback that leads to a leased browser. Its path is a secret; it never contains the secret of the session's URL. */
export interface LoopbackEndpoint extends AsyncDisposable {
  readonly url: string;
  close(): void;
}

/** Connects one client to an open socket. The secret is valid for one connection. */
export async function openSingleEndpoint(socket: Socket): Promise<LoopbackEndpoint> {
  const endpoint = await listen((client, server) => {
    server.close();
    connect(client, socket, 'closed-by-callback');
  });
  void socket.detached.then(() => endpoint.close());
  return endpoint;
}

/** Connects each client to a new socket, until the endpoint is closed. */
export async function openSharedEndpoint(
  open: (signal: AbortSignal) => Promise<Socket>,
): Promise<LoopbackEndpoint> {
  const closed = new AbortController();
  const endpoint = await listen(async (client) => {
    const end = () => client.terminate();
    closed.signal.addEventListener('abort', end, { once: true });
    client.once('close', () => closed.signal.removeEventListener('abort', end));
    // The client's first messages wait until the browser's socket is open.
    client.pause();
    try {
      connect(client, await open(closed.signal), 'closed-by-us');
    } catch {
      client.close(1011, 'The browser could not be reached');
    } finally {
      client.resume();
    }
  });
  const dispose = async () => {
    closed.abort();
    await endpoint[Symbol.asyncDispose]();
  };
  return { ...endpoint, [Symbol.asyncDispose]: dispose };
}

async function listen(
  onClient: (client: WebSocket, server: WebSocketServer) => unknown,
): Promise<LoopbackEndpoint> {
  const { WebSocketServer } = await loadWs();
  const path = `/${globalThis.crypto.randomUUID()}`;
  const server = new WebSocketServer({
    host: '127.0.0.1',
    port: 0,
    path,
    perMessageDeflate: false,
    skipUTF8Validation: true,
    maxPayload: 0,
  });
  server.on('connection', (client) => {
    client.on('error', () => {});
    void onClient(client, server);
  });
  await once(server, 'listening');
  const close = () => server.close();
  const dispose = async () => {
    close();
    await once(server, 'close');
  };
  const { port } = server.address() as AddressInfo;
  return { url: `ws://127.0.0.1:${port}${path}`, close, [Symbol.asyncDispose]: dispose };
}

function connect(client: WebSocket, socket: Socket, reason: SocketEnd): void {
  join(client, socket);
  client.once('close', () => socket.close(reason));
  if (client.readyState !== client.OPEN) socket.close(reason);
  void socket.detached.then(() => client.terminate());
}
