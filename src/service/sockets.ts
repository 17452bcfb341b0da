import { PoolClosedError } from '../shared/service-errors.js';
import type { Dispatcher } from 'undici';

interface Sockets {
  dispatcher: Dispatcher;
  /** Resolves when the first of them stands, and what waited for it was sent. */
  connected: Promise<void>;
}

/** One set of keep-alive sockets per origin, shared by all pools of this process that talk to it. */
const origins = new Map<string, { users: number; sockets?: Promise<Sockets> }>();

/** A pool's share in the sockets of an origin. Nothing is loaded or opened before the first request. */
export class OriginSockets {
  readonly #origin: string;
  #closed = false;

  constructor(origin: string) {
    this.#origin = origin;
    const shared = origins.get(origin);
    if (shared) shared.users++;
    else origins.set(origin, { users: 1 });
  }

  async dispatcher(): Promise<Dispatcher> {
    return (await this.#sockets()).dispatcher;
  }

  /** Resolves once the first request to this origin is on its way. */
  async connected(): Promise<void> {
    return (await this.#sockets()).connected;
  }

  /** The last one out closes the sockets. */
  async close(): Promise<void> {
    const shared = origins.get(this.#origin);
    if (this.#closed || !shared) return;
    this.#closed = true;
    if (--shared.users > 0) return;
    origins.delete(this.#origin);
    await (await shared.sockets)?.dispatcher.close();
  }

  async #sockets(): Promise<Sockets> {
    const shared = origins.get(this.#origin);
    if (this.#closed || !shared) throw new PoolClosedError();
    shared.sockets ??= openSockets(this.#origin);
    return shared.sockets;
  }
}

async function openSockets(origin: string): Promise<Sockets> {
  const { Pool } = await import('undici');
  // undici's own limits would end a long poll that the service still answers: each request brings its own.
  const dispatcher = new Pool(origin, { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 10_000 } });
  const connected = new Promise<void>((resolve) => {
    dispatcher.once('connect', () => setImmediate(resolve));
  });
  return { dispatcher, connected };
}
