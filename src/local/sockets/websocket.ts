import type { WebSocket, RawData } from 'ws';
import { closeWebSocket } from '../../net/accept-websocket.js';
import { excessOf, TOO_LARGE } from '../../shared/message-limit.js';
import type { CdpPipe } from '../browser/cdp-pipe.js';

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
