import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  STATUS_CODES,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { clock } from '../shared/clock.js';

/** Most connections that have not shown the secret. Each program of this machine can open more, and use up our descriptors. */
const MOST_STRANGERS = 200;

/** Milliseconds for the headers of a request, and for a whole request. */
const TIMEOUTS = { headersTimeout: 10_000, requestTimeout: 60_000, connectionsCheckingInterval: 2000 };

/** A request that is refused with an HTTP status. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, reason: string) {
    super(reason);
    this.status = status;
  }
}

/** Reads the body of a request as text. @param most Its largest size in bytes. @throws Refusal */
export async function readBody(request: IncomingMessage, most: number): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    // What is too much is read, too: many clients read no response before they have sent all.
    if (size <= most) parts.push(part);
  }
  if (size > most) throw new Refusal(413, `The body has more than ${most} bytes.`);
  return Buffer.concat(parts).toString();
}

interface LoopbackServer {
  readonly server: Server;
  /** To call with a connection that has shown the secret. */
  readonly trust: (connection: Duplex) => void;
  /** Ends all connections, also those of WebSockets. */
  readonly cut: () => void;
}

/**
 * Creates a server for loopback. Of the connections that have not shown the secret, it closes the oldest ones when they are too
 * many, and those that send no request.
 */
export function createLoopbackServer(): LoopbackServer {
  const server = createServer(TIMEOUTS);
  const strangers = new Set<Duplex>();
  const all = new Set<Duplex>();
  server.on('connection', (connection) => {
    all.add(connection);
    strangers.add(connection);
    connection.once('close', () => all.delete(connection) && strangers.delete(connection));
    // Without a listener, a reset after an upgrade would end this process.
    connection.on('error', () => connection.destroy());
    const [oldest] = strangers;
    if (strangers.size > MOST_STRANGERS) oldest!.destroy();
  });
  return {
    server,
    trust: (connection) => void strangers.delete(connection),
    cut: () => all.forEach((connection) => connection.destroy()),
  };
}

/** Listens on 127.0.0.1, at any free port by default. Resolves to `127.0.0.1:<port>`. */
export async function listenOnLoopback(server: Server, port = 0): Promise<string> {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/**
 * Returns why a request may come from a page of another origin; `undefined` if it does not. A page in any browser on this
 * machine can send requests to loopback ports, but it cannot forge Host (which prevents DNS rebinding) or omit Origin.
 *
 * @param host `127.0.0.1:<port>` of the server.
 * @param servesExtensions The caller checks the extension of a request itself.
 */
export function sourceFault(
  headers: IncomingHttpHeaders,
  host: string,
  servesExtensions = false,
): string | undefined {
  const { host: given, origin } = headers;
  if (servesExtensions && extensionOf(headers) !== undefined) return sourceFault({ host: given }, host);
  const hosts = [host, host.replace('127.0.0.1', 'localhost')];
  // chromedriver leaves out the port of a WebSocket.
  const named = [...hosts, ...hosts.map((own) => own.replace(/:\d+$/, ''))];
  if (!named.includes(given?.toLowerCase() ?? '')) return 'The Host header does not name this server.';
  const isOwn = origin === undefined || hosts.some((own) => origin.toLowerCase() === `http://${own}`);
  return isOwn ? undefined : 'Requests from other origins are refused.';
}

/** The id of the browser extension that sends a request; undefined if none does. */
export function extensionOf({ origin }: IncomingHttpHeaders): string | undefined {
  return /^chrome-extension:\/\/([a-p]{32})$/.exec(origin ?? '')?.[1];
}

/** Takes the same time for every secret. The comparison needs values of one length: hence the hashes. */
export function isSameSecret(sent: string, secret: string): boolean {
  return timingSafeEqual(sha256(sent), sha256(secret));
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Answers an upgrade request with an error, and closes the connection. */
export function refuseUpgrade(
  socket: Duplex,
  status: number,
  { headers, body }: { headers: Readonly<Record<string, string>>; body: string },
): void {
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  // Destroyed, because a client that never closes its side would keep the socket open.
  const timer = clock.setTimeout(() => socket.destroy(), LAST_WORDS);
  socket.once('close', () => clock.clearTimeout(timer));
}

/** Milliseconds within which a client that is refused closes its side. */
const LAST_WORDS = 1000;
