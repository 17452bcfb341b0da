import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { clock } from '../shared/clock.js';
import { loadWs } from '../shared/lazy.js';
import { naming } from '../shared/message-limit.js';

/** WebSocket close codes. */
export const NORMAL = 1000;
export const GOING_AWAY = 1001;
export const SERVER_ERROR = 1011;

/** An upgrade request, as Node's HTTP server passes it on. */
export type Upgrade = readonly [request: IncomingMessage, socket: Socket, head: Buffer];

/**
 * Completes an upgrade request.
 *
 * @param maxPayload Maximum size of a message, in bytes.
 * @param onOpen Called soon, unless the request is no valid WebSocket handshake: then the client receives an error.
 */
export function acceptWebSocket(
  upgrade: Upgrade,
  maxPayload: number,
  onOpen: (websocket: WebSocket) => void,
): void {
  // A test runner may run this library in jsdom, where an import of ws gives the one of browsers.
  void loadWs().then(({ WebSocket: Socket, WebSocketServer }) => {
    const server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload,
      WebSocket: naming(Socket, maxPayload),
    });
    server.handleUpgrade(...upgrade, (websocket) => {
      websocket.on('error', () => {
        // A close frame with the reason is on its way to a client that exceeds a limit.
        if (websocket.readyState !== websocket.CLOSING) websocket.terminate();
      });
      onOpen(websocket);
    });
  });
}

/** Closes a WebSocket within 500 ms, also when the peer does not answer the close frame. */
export function closeWebSocket(websocket: WebSocket, code: number, reason: string): void {
  websocket.close(code, reason);
  clock.setTimeout(() => websocket.terminate(), 500).unref();
}
