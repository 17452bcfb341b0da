import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { selfSigned } from '../support/self-signed.js';
import type { Service } from './bench.js';

/**
 * Simulates a far service: a TCP proxy delays every byte, and TLS ends behind it, in front of a local pool. URLs of the pool
 * lead to the proxy. Clients must accept its certificate (`NODE_TLS_REJECT_UNAUTHORIZED=0`). Needs `openssl`.
 */
export class DelayProxy implements AsyncDisposable {
  /** Delay in both directions together, in ms. */
  roundTrip = 0;
  readonly #pool: string;
  readonly #sockets = new Set<Socket>();
  readonly #tls = createTlsServer(selfSigned(), (socket) => this.#endTls(socket));
  readonly #server = createServer({ noDelay: true }, (socket) => this.#delay(socket));

  static async to({ baseUrl }: Service): Promise<DelayProxy> {
    const proxy = new DelayProxy(new URL(baseUrl).host);
    for (const server of [proxy.#tls, proxy.#server]) await once(server.listen(0, '127.0.0.1'), 'listening');
    if (hostOf(proxy.#server).length !== proxy.#pool.length)
      throw new Error('The ports have different lengths.');
    return proxy;
  }

  private constructor(pool: string) {
    this.#pool = pool;
  }

  get baseUrl(): string {
    return `https://${hostOf(this.#server)}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all([this.#server, this.#tls].map((server) => once(server.close(), 'close')));
  }

  #delay(client: Socket): void {
    const upstream = this.#connect(client, hostOf(this.#tls));
    // Read for each chunk, because kept-alive sockets must see a change.
    const half = () => this.roundTrip / 2;
    // The TCP handshake cannot be delayed on loopback, so the first bytes wait for its round trip.
    const opened = performance.now() + this.roundTrip;
    // In order, each chunk after its delay.
    const pass = (from: Socket, to: Socket, due: (now: number) => number) => {
      const later = (work: () => unknown) => setTimeout(work, due(performance.now()) - performance.now());
      from.on('data', (chunk) => later(() => to.writable && to.write(chunk)));
      from.on('end', () => later(() => to.end()));
      from.once('close', () => setTimeout(() => to.destroy(), half()));
    };
    pass(client, upstream, (now) => Math.max(now, opened) + half());
    pass(upstream, client, (now) => now + half());
  }

  /** Replaces addresses by addresses of equal length, so that lengths in messages stay correct: 127.00.1 is 127.0.0.1. */
  #endTls(client: Socket): void {
    const upstream = this.#connect(client, this.#pool);
    const host = hostOf(this.#server);
    const pass = (from: Socket, to: Socket, old: string, put: string) => {
      from.on('data', (chunk) => to.write(chunk.toString('latin1').replaceAll(old, put), 'latin1'));
      from.once('close', () => to.destroy());
    };
    pass(client, upstream, host, this.#pool);
    pass(upstream, client, `ws://${this.#pool}`, `wss://${host.replace('127.0.0.1', '127.00.1')}`);
  }

  #connect(client: Socket, to: string): Socket {
    const [host, port] = to.split(':');
    const upstream = connect({ host: host!, port: Number(port), noDelay: true });
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => this.#sockets.delete(socket));
    }
    return upstream;
  }
}

function hostOf(server: Server): string {
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
