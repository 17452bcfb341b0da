import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocket, WebSocketServer, type RawData } from 'ws';
import { clock } from '../../shared/clock.js';
import { excessOf, naming, TOO_LARGE } from '../../shared/message-limit.js';
import type { CdpPipe } from '../browser/cdp-pipe.js';

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
 * @param onOpen Called at once, unless the request is no valid WebSocket handshake: then the client receives an error.
 */
export function acceptWebSocket(
  upgrade: Upgrade,
  maxPayload: number,
  onOpen: (websocket: WebSocket) => void,
): void {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload,
    WebSocket: naming(WebSocket, maxPayload),
  });
  server.handleUpgrade(...upgrade, (websocket) => {
    websocket.on('error', () => {
      // A close frame with the reason is on its way to a client that exceeds a limit.
      if (websocket.readyState !== websocket.CLOSING) websocket.terminate();
    });
    onOpen(websocket);
  });
}

/** Bytes that wait for a side that does not read. One that then receives more is disconnected. */
const MOST_UNREAD = 128 * 1024 * 1024;

/** Sends a message. It is dropped if the WebSocket is not open. */
export function sendTo(websocket: WebSocket, data: RawData | string, binary = false): void {
  if (websocket.bufferedAmount > MOST_UNREAD) return websocket.terminate();
  if (websocket.readyState === websocket.OPEN) websocket.send(data as Buffer, { binary }, () => {});
}

/** Receives the messages of a client. The first one that would take too long to read disconnects it. */
export function receiveFrom(websocket: WebSocket, receive: (data: RawData, isBinary: boolean) => void): void {
  websocket.on('message', (data, isBinary) => {
    if (websocket.readyState !== websocket.OPEN) return;
    const excess = excessOf(data);
    if (excess === undefined) receive(data, isBinary);
    else closeWebSocket(websocket, TOO_LARGE, excess);
  });
}

/** Reads no further message of a client while its browser is slower. */
export function slowDown(websocket: WebSocket, { isFull, drained }: CdpPipe): void {
  if (!isFull || websocket.isPaused) return;
  websocket.pause();
  void drained().then(() => websocket.resume());
}

/** Closes a WebSocket within 500 ms, also when the peer does not answer the close frame. */
export function closeWebSocket(websocket: WebSocket, code: number, reason: string): void {
  websocket.close(code, reason);
  clock.setTimeout(() => websocket.terminate(), 500).unref();
}
