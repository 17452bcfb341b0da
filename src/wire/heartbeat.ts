import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { clock } from '../shared/clock.js';

/** Milliseconds between two pings: a silent connection is detected after five to six pings, within 15 s. */
const INTERVAL = 2500;
/** A connection on which nothing moved for this many pings in a row is dead. */
const MOST_MISSED = 5;

/** How much of one large message is still to be sent. Node's own timeout of sockets reads it, too. `_parent`: below TLS. */
interface WriteQueue {
  readonly _handle?: {
    readonly writeQueueSize?: number;
    readonly _parent?: { readonly writeQueueSize?: number };
  } | null;
}

/** Detects that a WebSocket is dead, from its opening on. */
export class Heartbeat {
  readonly #websocket: WebSocket;
  readonly #onDead: () => void;
  /** The connection below: its counters show that a large message is on its way. */
  #connection: (Socket & WriteQueue) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #moved = '';
  #missed = 0;

  constructor(websocket: WebSocket, onDead: () => void) {
    this.#websocket = websocket;
    this.#onDead = onDead;
    websocket.once('upgrade', ({ socket }) => (this.#connection = socket));
    websocket.once('open', () => {
      this.#timer = clock.setInterval(() => this.#beat(), INTERVAL).unref();
    });
  }

  stop(): void {
    clock.clearInterval(this.#timer);
  }

  /**
   * Counts pings without an effect instead of time, so that a busy or suspended process does not count its own pause as
   * silence. Bytes that move are life: over a slow link, a pong waits behind a large message.
   */
  #beat(): void {
    // A pong waits unread behind the messages that the receiver is too slow for.
    if (this.#websocket.isPaused) this.#missed = 0;
    const { bytesRead = 0, bytesWritten = 0, writableLength = 0, _handle: handle } = this.#connection ?? {};
    // The ping itself is written. It counts only while more than it waits to be written.
    const written = writableLength > 0 ? bytesWritten - writableLength : 0;
    const moved = [bytesRead, written, (handle?._parent ?? handle)?.writeQueueSize].join();
    this.#missed = moved !== this.#moved ? 0 : this.#missed + 1;
    this.#moved = moved;
    if (this.#missed >= MOST_MISSED) this.#onDead();
    else this.#websocket.ping();
  }
}
