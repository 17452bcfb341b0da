import { AsyncLocalStorage } from 'node:async_hooks';
import type { Lease } from '../lease/lease.js';
import type { WorkWith } from '../lease/options.js';
import type { PoolCore } from '../pool/pool-core.js';

/** A lease whose callback runs, and the one inside whose callback it was leased. */
interface Outer {
  readonly lease: Pick<Lease, 'context' | 'isEnding'>;
  readonly outer: Outer | undefined;
}

/** The lease inside whose callback the code runs now. */
const outerLease = new AsyncLocalStorage<Outer>();
/** How many callbacks run now. */
let running = 0;

/**
 * Returns the callback of a lease, in which `adviceInside` finds the lease. While no callback runs, there is nothing to find: up to
 * Node 22, a storage that is in use makes each promise of the process slower.
 */
export function inside<Handles, Value, Session extends object>(
  lease: Outer['lease'],
  fn: WorkWith<Handles, Value, Session>,
): WorkWith<Handles, Value, Session> {
  const outer = outerLease.getStore();
  return async (facts) => {
    running++;
    try {
      return await outerLease.run({ lease, outer }, fn, facts);
    } finally {
      if (--running === 0) outerLease.disable();
    }
  };
}

/**
 * Returns a function that explains why a call gets no browser that begins here, inside the callback of a lease of the same pool.
 * Undefined if it begins in no callback.
 */
export function adviceInside(): ((pool: PoolCore) => string | undefined) | undefined {
  const begun = outerLease.getStore();
  if (!begun) return undefined;
  return (pool) => {
    for (let one: Outer | undefined = begun; one; one = one.outer) {
      const { pool: other, grant } = one.lease.context;
      if (one.lease.isEnding) continue;
      if (other.api.baseUrl !== pool.api.baseUrl || other.idOrName !== pool.idOrName) continue;
      return (
        `This call runs inside the lease of session ${grant.id}${grant.name ? ` (${grant.name})` : ''} of the same pool, ` +
        'which can not end before it: lease one browser after the other, or enlarge the pool.'
      );
    }
    return undefined;
  };
}
