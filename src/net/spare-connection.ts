import type { Socket } from 'node:net';
import { routeTo, type NetworkSettings } from '../shared/network.js';
import { openConnection } from './connection.js';
import { createAbort } from '../shared/globals.js';

/** Milliseconds that an unused connection stays open. Many servers close a connection without a request after a minute. */
const LONGEST_IDLE = 30_000;

interface Spare {
  /** Undefined if it could not be opened: a failure costs nothing, because the lease opens its own connection. */
  readonly opening: Promise<Socket | undefined>;
  readonly abort: AbortController;
  /** On the clock that also counts while the machine sleeps. */
  readonly expiresAt: number;
  hasEnded: boolean;
}

/**
 * One TLS connection to the host of the latest WebSocket. It opens while an acquire request waits, and once that was useful,
 * already at the end of a lease: the WebSocket of the next lease needs no round trips for the proxy, TCP and TLS. Unencrypted
 * WebSockets lead to this machine, where a round trip costs nothing.
 */
export class SpareConnection {
  readonly #network: NetworkSettings;
  /** The host of the latest WebSocket, with its port. */
  #host: string | undefined;
  #spare: Spare | undefined;
  #wasUsed = false;

  constructor(network: NetworkSettings) {
    this.#network = network;
  }

  /** Remembers the host of a WebSocket. */
  note({ protocol, host }: URL): void {
    this.#host = protocol === 'wss:' ? host : undefined;
  }

  /** Opens the connection, unless it is open. It does not keep the process alive. */
  prepare(): void {
    if (this.#host === undefined || this.#isUsable) return;
    this.#drop();
    const abort = createAbort();
    const how = { signal: abort.signal, isSpare: true };
    const url = new URL(`https://${this.#host}`);
    const opening = openConnection(url, routeTo(url, this.#network), how).then(
      (socket) => {
        socket.on('error', () => {}).once('close', () => (spare.hasEnded = true));
        return socket.setTimeout(LONGEST_IDLE, () => socket.destroy());
      },
      () => {
        spare.hasEnded = true;
        return undefined;
      },
    );
    const spare: Spare = { opening, abort, expiresAt: Date.now() + LONGEST_IDLE, hasEnded: false };
    this.#spare = spare;
  }

  /** Opens the next connection at the end of a lease, if an earlier one was used. */
  renew(): void {
    if (this.#wasUsed) this.prepare();
  }

  /**
   * Returns the connection, which may be about to open, if it leads to this host. It belongs to the caller then. Consumers
   * of the package need no types of Node for it.
   */
  async take({ protocol, host }: URL): Promise<object | undefined> {
    if (!this.#isUsable || protocol !== 'wss:' || host !== this.#host) return undefined;
    const { opening } = this.#spare!;
    this.#spare = undefined;
    this.#wasUsed = true;
    return (await opening)?.setTimeout(0).ref();
  }

  close(): void {
    this.#host = undefined;
    this.#drop();
  }

  #drop(): void {
    this.#spare?.abort.abort();
    void this.#spare?.opening.then((socket) => socket?.destroy());
    this.#spare = undefined;
  }

  get #isUsable(): boolean {
    return this.#spare?.hasEnded === false && Date.now() < this.#spare.expiresAt;
  }
}
