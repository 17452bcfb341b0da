import type { DestroyReason, Log } from '../events.js';
import type { LeaseRequest } from './lease.js';

/** What one pool tells the log of all. */
export class PoolLog {
  readonly #pool: string;
  readonly #log: Log;

  constructor(pool: string, log: Log) {
    this.#pool = pool;
    this.#log = log;
  }

  started(sessionId: string, pid: number): void {
    this.#log({ type: 'browser-started', pool: this.#pool, sessionId, pid });
  }

  startFailed({ message }: Error): void {
    this.#log({ type: 'browser-start-failed', pool: this.#pool, message });
  }

  waiting({ name }: LeaseRequest): void {
    this.#log({ type: 'waiting', pool: this.#pool, ...(name !== undefined && { name }) });
  }

  leased(sessionId: string, { name }: LeaseRequest): void {
    this.#log({ type: 'leased', pool: this.#pool, sessionId, ...(name !== undefined && { name }) });
  }

  released(sessionId: string): void {
    this.#log({ type: 'released', pool: this.#pool, sessionId });
  }

  destroyed(sessionId: string, reason: DestroyReason): void {
    this.#log({ type: 'browser-destroyed', pool: this.#pool, sessionId, reason });
  }
}
