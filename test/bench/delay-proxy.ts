import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Service } from './by-hand.js';

/**
 * A far service: TCP to a local pool through a proxy that holds every byte back. The URLs that the pool hands out lead
 * over the proxy as well.
 */
export class DelayProxy implements AsyncDisposable {
  /** Milliseconds there and back. */
  roundTrip = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #target: string;

  static async to({ baseUrl }: Service): Promise<DelayProxy> {
    const proxy = new DelayProxy(new URL(baseUrl).host);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    // The addresses in the bytes are replaced in place.
    if (proxy.#host.length !== proxy.#target.length) throw new Error('The ports are of different lengths.');
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
    // Asked for with each chunk: sockets that are kept alive see it change.
    const half = () => this.roundTrip / 2;
    // TCP's own handshake is over on loopback before anybody can hold it back: what comes first waits for it.
    const opened = performance.now() + this.roundTrip;
    pass(client, upstream, (now) => Math.max(now, opened) + half(), [this.#host, this.#target]);
    pass(upstream, client, (now) => now + half(), [this.#target, this.#host]);
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => this.#sockets.delete(socket));
    }
    upstream.once('close', () => setTimeout(() => client.destroy(), half()));
    client.once('close', () => setTimeout(() => upstream.destroy(), half()));
  }
}

/** In order, each chunk when it is due. */
function pass(from: Socket, to: Socket, due: (now: number) => number, [old, put]: [string, string]): void {
  from.on('data', (chunk) => {
    const bytes = Buffer.from(chunk.toString('latin1').replaceAll(old, put), 'latin1');
    setTimeout(() => to.writable && to.write(bytes), due(performance.now()) - performance.now());
  });
  from.on('end', () => setTimeout(() => to.end(), due(performance.now()) - performance.now()));
}
