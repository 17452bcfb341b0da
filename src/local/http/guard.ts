import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { HttpFault } from './http-fault.js';

/**
 * A page in some browser on this machine can send requests to loopback ports. It can't choose the Host header beyond
 * its own address (DNS rebinding), and it can't leave out Origin: both must be ours.
 */
export function checkSource({ headers }: IncomingMessage, port: number): void {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  if (!hosts.includes(headers.host?.toLowerCase() ?? '')) {
    throw new HttpFault(403, 'forbidden', 'The Host header does not name this server.');
  }
  const { origin } = headers;
  if (origin !== undefined && !hosts.some((host) => origin.toLowerCase() === `http://${host}`)) {
    throw new HttpFault(403, 'forbidden', 'Requests from other origins are refused.');
  }
}

/** Requires `Authorization: Bearer <token>` (interface: Authentication). */
export function checkToken({ headers }: IncomingMessage, token: string): void {
  const sent = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  if (sent !== undefined && isSame(sent, token)) return;
  throw new HttpFault(401, 'unauthorized', 'The access token is missing or wrong.', {
    headers: { 'www-authenticate': 'Bearer' },
  });
}

/** Takes as long for a nearly right token as for any other. Digests have one length, which the comparison needs. */
function isSame(sent: string, token: string): boolean {
  const [a, b] = [sent, token].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(a!, b!);
}
