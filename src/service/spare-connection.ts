import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';

/** Milliseconds that an unused connection stays open. Many servers close a connection without a request after a minute. */
const LONGEST_IDLE = 30_000;

/**
 * One TLS connection to the host of the latest WebSocket. It opens while an acquire request waits, and once that was useful,
 * already at the end of a lease: the WebSocket of the next lease needs no round trips for TCP and TLS. Unencrypted WebSockets
 * lead to this machine, where a round trip costs nothing.
 */
export class SpareConnection {
  /** The host of the latest WebSocket, with its port. */
  #host: string | undefined;
  #socket: TLSSocket | undefined;
  /** On the clock that also counts while the machine sleeps. */
  #expiresAt = 0;
  #wasUsed = false;

  /** Remembers the host of a WebSocket. */
  note({ protocol, host }: URL): void {
    this.#host = protocol === 'wss:' ? host : undefined;
  }

  /** Opens the connection, unless it is open. It does not keep the process alive. */
  prepare(): void {
    if (this.#host === undefined || this.#isUsable) return;
    this.#socket?.destroy();
    const { hostname, port } = new URL(`https://${this.#host}`);
    const host = hostname.replace(/^\[|\]$/g, '');
    const socket = connect({
      host,
      port: Number(port || 443),
      ...(isIP(host) === 0 && { servername: host }),
    });
    this.#socket = socket;
    this.#expiresAt = Date.now() + LONGEST_IDLE;
    socket.unref();
    // A failure costs nothing: the lease opens its own connection.
    socket.on('error', () => {});
    socket.setTimeout(LONGEST_IDLE, () => socket.destroy());
  }

  /** Opens the next connection at the end of a lease, if an earlier one was used. */
  renew(): void {
    if (this.#wasUsed) this.prepare();
  }

  /**
   * Returns the connection, which may be about to open, if it leads to this host. It belongs to the caller then. Consumers
   * of the package need no types of Node for it.
   */
  take({ protocol, host }: URL): object | undefined {
    const socket = this.#socket;
    if (!this.#isUsable || protocol !== 'wss:' || host !== this.#host) return undefined;
    this.#socket = undefined;
    this.#wasUsed = true;
    return socket!.setTimeout(0).ref();
  }

  close(): void {
    this.#host = undefined;
    this.#socket?.destroy();
  }

  get #isUsable(): boolean {
    return this.#socket?.destroyed === false && Date.now() < this.#expiresAt;
  }
}
