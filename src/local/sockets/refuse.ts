import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { HttpFault } from '../http/http-fault.js';

/** Answers an upgrade request with an error, in due form, and ends the connection. */
export function refuse(socket: Socket, { status, body }: HttpFault): void {
  const text = JSON.stringify(body);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    `x-request-id: ${randomUUID()}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`);
  // A client that never closes its side would hold the socket for ever.
  socket.setTimeout(1_000, () => socket.destroy());
}
