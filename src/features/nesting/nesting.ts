import { AsyncLocalStorage } from 'node:async_hooks';
import type { CallContext, LeaseContext } from '../../lease/context.js';
import type { LeaseFeature } from '../../lease/feature.js';
import { onAbort } from '../../shared/abort.js';

/** The lease inside whose callback the code runs now. */
const outerLease = new AsyncLocalStorage<Nesting>();

/** Explains why a call gets no browser that runs inside the callback of a lease of the same pool. */
export class Nesting implements LeaseFeature {
  readonly name = 'nesting';
  readonly #outer = outerLease.getStore();
  /** The browser that the lease holds now. */
  #held: LeaseContext | undefined;

  leased(lease: LeaseContext): void {
    this.#held = lease;
    onAbort(lease.givenUp, () => (this.#held = undefined));
  }

  surround<Value>(callback: () => Promise<Value>): Promise<Value> {
    return outerLease.run(this, callback);
  }

  async stop(): Promise<void> {
    this.#held = undefined;
  }

  advise({ pool }: CallContext): string | undefined {
    for (let outer = this.#outer; outer; outer = outer.#outer) {
      if (!outer.#held) continue;
      const { pool: other, grant } = outer.#held;
      if (other.api.baseUrl !== pool.api.baseUrl || other.idOrName !== pool.idOrName) continue;
      return (
        `This call runs inside the lease of session ${grant.id}${grant.name ? ` (${grant.name})` : ''} of the same pool, ` +
        'which can not end before it: lease one browser after the other, or enlarge the pool.'
      );
    }
    return undefined;
  }
}
