import type { IncomingMessage } from 'node:http';
import { WebSocketServer, type WebSocket } from 'ws';
import type { Lease, OpenSocket } from '../pool/lease.js';

/** WebSocket close codes. */
export const NORMAL = 1000;
export const GOING_AWAY = 1001;
export const SERVER_ERROR = 1011;

/** Handles an open WebSocket of a lease. @returns A function that closes the WebSocket when the lease ends. */
type Serve = (websocket: WebSocket, lease: Lease, request: IncomingMessage) => () => void;

/**
 * Returns a function that completes the upgrade requests of WebSockets.
 *
 * @param maxPayload Maximum size of a message, in bytes.
 */
export function acceptWebSockets(maxPayload: number, serve: Serve): OpenSocket {
  const server = new WebSocketServer({ noServer: true, clientTracking: false, maxPayload });
  return (lease, request, socket, head) => {
    let end = (): void => void socket.destroy();
    server.handleUpgrade(request, socket, head, (websocket) => {
      websocket.on('error', () => websocket.terminate());
      end = serve(websocket, lease, request);
    });
    return () => end();
  };
}

/** Closes a WebSocket within 500 ms, also when the peer does not answer the close frame. */
export function closeWebSocket(websocket: WebSocket, code: number, reason: string): void {
  websocket.close(code, reason);
  setTimeout(() => websocket.terminate(), 500).unref();
}
