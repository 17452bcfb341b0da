import { AsyncLocalStorage } from 'node:async_hooks';
import type { BrowserPool } from '../service/browser-pool.js';
import { INTERNALS } from '../service/pool-internals.js';
import type { BrowserSession } from '../service/wire.js';
import { NestedLeaseError } from '../shared/lease-errors.js';
import type { LeaseCall } from './lease-call.js';

interface OuterLease {
  pool: BrowserPool;
  session: BrowserSession;
}

/** The outer leases of the code that runs now, the innermost last. */
const outerLeases = new AsyncLocalStorage<readonly OuterLease[]>();

/** Calls a callback inside a lease, so that calls in it can find the lease. */
export function callInside<T>(lease: OuterLease, fn: () => T): T {
  return outerLeases.run([...(outerLeases.getStore() ?? []), lease], fn);
}

/** A wait for a browser inside the callback of a lease of the same pool. It can be a deadlock. */
export class NestedWait {
  readonly #call: LeaseCall;
  readonly #outer: OuterLease;

  /** Begins a nested wait, if the code runs inside a lease of the same pool. */
  static begin(call: LeaseCall): NestedWait | undefined {
    const outer = outerLeases.getStore()?.findLast((lease) => isOf(lease, call.pool));
    return outer && new NestedWait(call, outer);
  }

  private constructor(call: LeaseCall, outer: OuterLease) {
    this.#call = call;
    this.#outer = outer;
    this.#blocked.add(outer);
  }

  end(): void {
    this.#blocked.delete(this.#outer);
  }

  /** A sentence for errors. */
  get where(): string {
    const { session_id, name } = this.#outer.session;
    return `This call runs inside the lease of session ${session_id}${name ? ` (${name})` : ''} of the same pool, which can't end before it.`;
  }

  /** Aborts the call if no browser can become available. Without the pool's counts, `acquireTimeout` ends the wait. */
  endDeadlock(): void {
    this.#findDeadlock().then(
      (error) => error && this.#call.abort.abort(error),
      () => {},
    );
  }

  /** A deadlock: each leased browser of the pool is held by a call that waits for another one. */
  async #findDeadlock(): Promise<NestedLeaseError | undefined> {
    const { pool } = this.#call;
    const { acquired_count: leased, browser_pool_config: { size } = {} } = await pool.describe();
    const waiting = [...this.#blocked].filter((lease) => isOf(lease as OuterLease, pool)).length;
    // If fewer browsers are leased than the pool's size, the pool is being refilled.
    if (leased === undefined || size === undefined || leased < size || leased > waiting) return undefined;
    return new NestedLeaseError(
      `No browser of pool "${pool.idOrName}" can become available: all leased browsers (${leased}) are held by ` +
        `calls that wait for another one. ${this.where} Lease one browser after the other, or enlarge the pool.`,
      this.#outer.session.session_id,
      { pool: pool.idOrName },
    );
  }

  get #blocked(): Set<object> {
    return this.#call.pool[INTERNALS].client.service.blockedLeases;
  }
}

function isOf({ pool: { baseUrl, idOrName }, session }: OuterLease, pool: BrowserPool): boolean {
  return baseUrl === pool.baseUrl && [idOrName, session.pool?.id, session.pool?.name].includes(pool.idOrName);
}
