import { PoolClosedError } from '../errors/index.js';
import type { Dispatcher } from 'undici';

/** One set of keep-alive sockets per origin, shared by all pools of this process that talk to it. */
const origins = new Map<string, { users: number; dispatcher?: Promise<Dispatcher> }>();

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
    const shared = origins.get(this.#origin);
    if (this.#closed || !shared) throw new PoolClosedError();
    shared.dispatcher ??= openDispatcher(this.#origin);
    return shared.dispatcher;
  }

  /** The last one out closes the sockets. */
  async close(): Promise<void> {
    const shared = origins.get(this.#origin);
    if (this.#closed || !shared) return;
    this.#closed = true;
    if (--shared.users > 0) return;
    origins.delete(this.#origin);
    await (await shared.dispatcher)?.close();
  }
}

async function openDispatcher(origin: string): Promise<Dispatcher> {
  const { Pool } = await import('undici');
  // undici's own limits would end a long poll that the service still answers: each request brings its own.
  return new Pool(origin, { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 10_000 } });
}
