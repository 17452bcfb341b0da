import type { WebSocket } from 'ws';
import type { Log, Protocol } from '../events.js';
import { HttpFault } from '../http/answer.js';
import type { ServedLease } from '../pool/served-lease.js';
import { acceptWebSocket, type Upgrade } from '../../net/accept-websocket.js';

/** A WebSocket that its URL authorizes. */
export interface LeaseSocket {
  readonly lease: ServedLease;
  readonly protocol: Protocol;
  /** Maximum size of a message of the client, in bytes. */
  readonly maxBytes: number;
  readonly open: (websocket: WebSocket) => OpenSocket;
}

/** An open WebSocket of a lease. */
interface OpenSocket {
  /** Ends the connection. No further command reaches the browser. */
  cut(): void;
}

/** Opens a WebSocket that counts as a connection of its lease and ends with the lease. @throws HttpFault */
export function openLeaseSocket(log: Log, found: LeaseSocket, received: Upgrade): void {
  const { lease, protocol, maxBytes, open } = found;
  const { sessionId } = lease;
  const [, socket] = received;
  if (lease.ended || socket.destroyed) throw unauthorized();
  acceptWebSocket(received, maxBytes, (websocket) => {
    // It may have ended meanwhile: its browser may belong to another lease.
    if (lease.ended) return websocket.terminate();
    const opened = open(websocket);
    const disconnect = lease.connect(() => opened.cut());
    log({ type: 'connected', sessionId, protocol });
    socket.once('close', () => {
      disconnect();
      log({ type: 'disconnected', sessionId, protocol });
    });
  });
}

export function unauthorized(): HttpFault {
  return new HttpFault(401, 'unauthorized', 'The jwt of this WebSocket URL is missing, wrong or expired.');
}
