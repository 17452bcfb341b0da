import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';

/** Milliseconds that an unused connection stays open: an acquire request can wait for minutes. */
const LONGEST_IDLE = 60_000;

/**
 * One TLS connection to the host of the latest WebSocket, opened while an acquire request waits: the WebSocket of that lease
 * needs no round trips for TCP and TLS. Unencrypted WebSockets lead to this machine, where a round trip costs nothing.
 */
export class SpareConnection {
  /** The host of the latest WebSocket, with its port. */
  #host: string | undefined;
  #socket: TLSSocket | undefined;

  /** Remembers the host of a WebSocket. */
  note({ protocol, host }: URL): void {
    this.#host = protocol === 'wss:' ? host : undefined;
  }

  /** Opens the connection, unless it is open. It does not keep the process alive. */
  prepare(): void {
    if (this.#host === undefined || this.#socket) return;
    const { hostname, port } = new URL(`https://${this.#host}`);
    const host = hostname.replace(/^\[|\]$/g, '');
    const socket = connect({
      host,
      port: Number(port || 443),
      ...(isIP(host) === 0 && { servername: host }),
    });
    this.#socket = socket;
    socket.unref();
    // A failure costs nothing: the lease opens its own connection.
    socket.on('error', () => {});
    socket.setTimeout(LONGEST_IDLE, () => socket.destroy());
    socket.once('close', () => {
      if (this.#socket === socket) this.#socket = undefined;
    });
  }

  /** Returns the connection, if it is established and leads to this host. It belongs to the caller then. */
  take({ protocol, host }: URL): TLSSocket | undefined {
    const socket = this.#socket;
    if (protocol !== 'wss:' || host !== this.#host || socket?.readyState !== 'open') return undefined;
    if (socket.getProtocol() === null) return undefined;
    this.#socket = undefined;
    return socket.setTimeout(0).ref();
  }

  close(): void {
    this.#socket?.destroy();
  }
}
