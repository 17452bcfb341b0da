import type { ServiceClient } from './client.js';
import type { HeldSessions } from './held-sessions.js';

/** Reads the internals of a pool. */
export const INTERNALS: unique symbol = Symbol('pooled-browser.internals');

/** The state of a pool that the modules of a lease share. */
export interface PoolInternals {
  readonly client: ServiceClient;
  readonly background: BackgroundWork;
  readonly held: HeldSessions;
  /** Most leases of this process at once. */
  readonly limit: number;
}

/** Work that continues after an abort of its caller, such as the release of a browser that was leased too late. */
export class BackgroundWork {
  readonly #work = new Set<Promise<unknown>>();

  /** Adds work for `settled` to wait for. The work handles its own errors. */
  track(work: Promise<unknown>): void {
    this.#work.add(work);
    const remove = () => this.#work.delete(work);
    work.then(remove, remove);
  }

  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.allSettled(this.#work);
  }
}
