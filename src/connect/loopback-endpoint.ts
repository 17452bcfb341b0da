import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { WebSocket, WebSocketServer } from 'ws';
import { loadWs } from '../shared/lazy.js';
import { join } from './relay.js';
import type { AnySocket, OpenClient, Socket, SocketEnd } from './socket.js';

/** A WebSocket URL on loopback that leads to a leased browser. Its path is a secret; it never contains the secret of the session's URL. */
export interface LoopbackEndpoint extends AsyncDisposable {
  readonly url: string;
}

/** Connects one client to an open socket. The secret is valid for one connection. Resolves to the URL. */
export async function openSingleEndpoint(socket: Socket): Promise<string> {
  const { url, server } = await listen((client) => {
    server.close();
    connect(client, socket, 'closed-by-callback');
  });
  void socket.detached.then(() => server.close());
  return url;
}

/** Connects each client to a new socket, until the endpoint is closed. */
export async function openSharedEndpoint(open: OpenClient): Promise<LoopbackEndpoint> {
  const closed = new AbortController();
  const { url, server } = await listen(async (client) => {
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
    for (const client of server.clients) client.terminate();
    server.close();
    await once(server, 'close');
  };
  return { url, [Symbol.asyncDispose]: dispose };
}

/** Listens at a secret path. */
async function listen(
  onClient: (client: WebSocket) => unknown,
): Promise<{ url: string; server: WebSocketServer }> {
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
    void onClient(client);
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `ws://127.0.0.1:${port}${path}`, server };
}

function connect(client: WebSocket, socket: AnySocket, reason: SocketEnd): void {
  join(client, socket);
  client.once('close', () => socket.close(reason));
  if (client.readyState !== client.OPEN) socket.close(reason);
  void socket.detached.then(() => client.terminate());
}
