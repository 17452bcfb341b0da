import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { WebSocket } from 'ws';
import { loadWs } from '../shared/lazy.js';
import type { Socket } from './socket.js';

/**
 * A websocket server on loopback that joins one client to our socket, for a driver that only takes a URL.
 * Its URL holds a secret of its own, good for one connection, and never the session's jwt.
 */
export async function openRelay(socket: Socket): Promise<{ url: string; close: () => void }> {
  const { WebSocketServer } = await loadWs();
  const path = `/${randomUUID()}`;
  const server = new WebSocketServer({
    host: '127.0.0.1',
    port: 0,
    path,
    perMessageDeflate: false,
    skipUTF8Validation: true,
    maxPayload: 0,
  });
  server.once('connection', (client) => {
    // No second client: this one has used up the secret.
    server.close();
    join(client, socket);
  });
  const close = () => server.close();
  void socket.ended.then(close);
  await once(server, 'listening');
  return { url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, close };
}

function join(client: WebSocket, socket: Socket): void {
  socket.onMessage = (data, isBinary) => client.send(data, { binary: isBinary });
  client.on('message', (data, isBinary) => socket.send(data, isBinary));
  client.on('error', () => {});
  client.once('close', () => socket.close('closed-by-callback'));
  void socket.ended.then(() => client.terminate());
}
