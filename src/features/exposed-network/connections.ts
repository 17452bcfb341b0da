import http2, { type ClientHttp2Session } from 'node:http2';
import { isIP, type LookupFunction } from 'node:net';
import tls, { type TLSSocket } from 'node:tls';
import { isLoopback } from '../../shared/urls.js';

/** How a host is reached: options of Node's connections. */
interface Route {
  readonly lookup?: LookupFunction;
  /**
   * Milliseconds until Node ends the attempt at one address of a host for the next address. After its usual 250, a process that is busy
   * for a moment would end an attempt that has succeeded.
   */
  readonly autoSelectFamilyAttemptTimeout: number;
}

export function routeTo({ hostname }: URL): Route {
  // No address of this machine lets a client wait.
  if (isLocalhost(hostname)) return { lookup: lookupLocalhost, autoSelectFamilyAttemptTimeout: 10_000 };
  return { autoSelectFamilyAttemptTimeout: 2000 };
}

/** A browser resolves these names by itself. */
function isLocalhost(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}

/** Whether nobody can read, or change, what a server sends. */
export function isTrustworthy({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || isLoopback(hostname) || isLocalhost(hostname);
}

/** A browser resolves it to both addresses, and not every system does. */
const lookupLocalhost: LookupFunction = (_hostname, { all }, callback) => {
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ];
  if (all) return callback(null, addresses);
  callback(null, '127.0.0.1', 4);
};

type TlsRoute = Route & { readonly rejectUnauthorized: boolean };

/** The connections to servers that speak HTTP/2. Over TLS, a browser speaks it wherever the server does. */
export class Http2Sessions {
  readonly #byOrigin = new Map<string, Promise<ClientHttp2Session | undefined>>();
  /** Those of servers that have not answered. */
  readonly #opening = new Set<TLSSocket>();

  /** Resolves to undefined if the server speaks only HTTP/1.1. Rejects with the error of the connection. */
  of(url: URL, how: TlsRoute): Promise<ClientHttp2Session | undefined> {
    const { origin } = url;
    const known = this.#byOrigin.get(origin);
    if (known) return known;
    const forget = () => this.#byOrigin.delete(origin);
    const opening = this.#start(url, how, forget);
    this.#byOrigin.set(origin, opening);
    opening.catch(forget);
    return opening;
  }

  close(): void {
    for (const one of this.#byOrigin.values()) one.then((session) => session?.destroy()).catch(() => {});
    this.#byOrigin.clear();
    for (const socket of this.#opening) socket.destroy(new Error('The lease has ended.'));
  }

  async #start(url: URL, how: TlsRoute, onEnd: () => void): Promise<ClientHttp2Session | undefined> {
    const host = url.hostname.replaceAll(/^\[|\]$/g, '');
    const socket = tls.connect({
      host,
      port: Number(url.port || 443),
      ...(isIP(host) === 0 && { servername: host }),
      ALPNProtocols: ['h2', 'http/1.1'],
      ...how,
    });
    this.#opening.add(socket);
    await new Promise((resolve, reject) => {
      socket.once('secureConnect', resolve);
      socket.once('error', reject);
    }).finally(() => this.#opening.delete(socket));
    if (socket.alpnProtocol !== 'h2') {
      socket.destroy();
      return undefined;
    }
    const session = http2.connect(url.origin, { createConnection: () => socket });
    // Of a request, its stream reports the error.
    session.on('error', () => {});
    session.once('goaway', onEnd);
    session.once('close', onEnd);
    return session;
  }
}
