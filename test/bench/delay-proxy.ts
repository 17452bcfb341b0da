import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Service } from './bench.js';

/** Simulates a far service: a TCP proxy to a local pool that delays every byte. URLs of the pool point to the proxy too. */
export class DelayProxy implements AsyncDisposable {
  /** Delay in both directions together, in ms. */
  roundTrip = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #target: string;

  static async to({ baseUrl }: Service): Promise<DelayProxy> {
    const proxy = new DelayProxy(new URL(baseUrl).host);
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening');
    // Addresses are replaced by addresses of equal length, so that lengths in messages stay correct.
    if (proxy.#host.length !== proxy.#target.length) throw new Error('The ports have different lengths.');
    return proxy;
  }

  private constructor(target: string) {
    this.#target = target;
    this.#server = createServer({ noDelay: true }, (socket) => this.#join(socket));
  }

  get baseUrl(): string {
    return `http://${this.#host}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server.close(), 'close');
  }

  get #host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  #join(client: Socket): void {
    const [hostname, port] = this.#target.split(':');
    const upstream = connect({ host: hostname!, port: Number(port), noDelay: true });
    // Read for each chunk, because kept-alive sockets must see a change.
    const half = () => this.roundTrip / 2;
    // The TCP handshake cannot be delayed on loopback, so the first bytes wait for its round trip.
    const opened = performance.now() + this.roundTrip;
    pass(client, upstream, (now) => Math.max(now, opened) + half(), [this.#host, this.#target]);
    pass(upstream, client, (now) => now + half(), [this.#target, this.#host]);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => {
        this.#sockets.delete(socket);
        setTimeout(() => other.destroy(), half());
      });
    }
  }
}

/** Forwards chunks in order, each after its delay. */
function pass(from: Socket, to: Socket, due: (now: number) => number, [old, put]: [string, string]): void {
  const later = (work: () => unknown) => setTimeout(work, due(performance.now()) - performance.now());
  from.on('data', (chunk) => {
    const bytes = Buffer.from(chunk.toString('latin1').replaceAll(old, put), 'latin1');
    later(() => to.writable && to.write(bytes));
  });
  from.on('end', () => later(() => to.end()));
}
