import { once } from 'node:events';
import type { WebSocket } from 'ws';
import { createLoopbackServer, listenOnLoopback } from '../net/loopback-server.js';
import { onAbort } from '../shared/abort.js';
import { asError } from '../shared/errors.js';
import { loadWs } from '../shared/lazy.js';
import { join, wholeSocket } from './relay.js';
import type { ClientSocket, OpenClient, SocketEnd } from './socket.js';
import { createAbort } from '../shared/globals.js';

/** Of the reason in a close frame, in characters: of one byte each, because the reasons are ours. */
const LONGEST_REASON = 123;
/** Code of a close frame: the browser ends. */
const GOING_AWAY = 1001;

/** A WebSocket URL on loopback that leads to a leased browser. Its path is a secret; it never contains the secret of the session's URL. */
export interface LoopbackEndpoint extends AsyncDisposable {
  readonly url: string;
}

/** Connects one client to an open socket. The secret is valid for one connection. Resolves to the URL. */
export async function openSingleEndpoint(socket: ClientSocket): Promise<string> {
  const { url, close } = await openForOne((client) => connect(client, socket, 'closed-by-callback'));
  void socket.detached.then(close);
  return url;
}

/** Serves one client. Resolves to the URL, and to a function that ends the wait for the client. */
export async function openForOne(
  serve: (client: WebSocket) => void,
): Promise<{ url: string; close: () => Promise<unknown> }> {
  const endpoint = await listen((client) => {
    void endpoint.close();
    serve(client);
  });
  return endpoint;
}

/** Connects each client to a new socket, until the endpoint is closed. @param over Disconnects the clients, with the message of its reason. */
export async function openSharedEndpoint(open: OpenClient, over?: AbortSignal): Promise<LoopbackEndpoint> {
  const closed = createAbort();
  const clients = new Set<WebSocket>();
  const { url, close } = await listen(async (client) => {
    clients.add(client);
    client.once('close', () => clients.delete(client));
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
  const stopListening = onAbort(over, () => {
    const reason = asError(over!.reason).message.slice(0, LONGEST_REASON);
    for (const client of clients) client.close(GOING_AWAY, reason);
  });
  const dispose = async () => {
    stopListening();
    closed.abort();
    for (const client of clients) client.terminate();
    await close();
  };
  return { url, [Symbol.asyncDispose]: dispose };
}

/** Listens at a secret path. `close` leaves the clients alone. */
async function listen(
  onClient: (client: WebSocket) => unknown,
): Promise<{ url: string; close: () => Promise<unknown> }> {
  const { WebSocketServer } = await loadWs();
  const path = `/${globalThis.crypto.randomUUID()}`;
  const { server, trust } = createLoopbackServer();
  server.on('request', (_request, response) => response.writeHead(426).end());
  const sockets = new WebSocketServer({
    server,
    clientTracking: false,
    path,
    perMessageDeflate: false,
    skipUTF8Validation: true,
    maxPayload: 0,
  });
  sockets.on('connection', (client, { socket }) => {
    trust(socket);
    client.on('error', () => {});
    void onClient(client);
  });
  const host = await listenOnLoopback(server);
  const closed = once(server, 'close');
  const close = () => {
    server.close();
    // Those of strangers. The connections of clients are no longer the server's.
    server.closeAllConnections();
    return closed;
  };
  return { url: `ws://${host}${path}`, close };
}

function connect(client: WebSocket, socket: ClientSocket, reason: SocketEnd): void {
  join(client, socket, wholeSocket(socket));
  client.once('close', () => socket.close(reason));
  if (client.readyState !== client.OPEN) socket.close(reason);
  void socket.detached.then(() => client.terminate());
}
