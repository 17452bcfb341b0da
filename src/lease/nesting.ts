import { AsyncLocalStorage } from 'node:async_hooks';
import { NestedLeaseError } from '../shared/service-errors.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { BrowserSession } from '../service/wire.js';

interface OuterLease {
  baseUrl: string;
  idOrName: string;
  session: BrowserSession;
}

/** The leases around the code that runs now, the innermost last. */
const around = new AsyncLocalStorage<readonly OuterLease[]>();

/** Leases whose callback waits for another browser of their own pool. */
const blocked = new Set<OuterLease>();

/** Calls the callback of a lease, so that what it calls can be told to be inside it. */
export function callInside<T>(pool: BrowserPool, session: BrowserSession, fn: () => T): T {
  const lease = { baseUrl: pool.baseUrl, idOrName: pool.idOrName, session };
  return around.run([...(around.getStore() ?? []), lease], fn);
}

/** The wait for a browser inside a lease of the same pool: it must not turn into a wait without end. */
export class NestedWait {
  readonly #pool: BrowserPool;
  readonly #outer: OuterLease;

  /** The wait that would begin here, if this is inside a lease of the same pool. */
  static begin(pool: BrowserPool): NestedWait | undefined {
    const outer = around.getStore()?.findLast((lease) => isOf(lease, pool));
    return outer && new NestedWait(pool, outer);
  }

  private constructor(pool: BrowserPool, outer: OuterLease) {
    this.#pool = pool;
    this.#outer = outer;
    blocked.add(outer);
  }

  end(): void {
    blocked.delete(this.#outer);
  }

  /** For errors: which lease this wait is inside of. */
  get where(): string {
    const { session_id, name } = this.#outer.session;
    return `This call is made inside the lease of session ${session_id}${name ? ` (${name})` : ''} of the same pool, which can't end before it.`;
  }

  /**
   * The error to end the wait with, when no browser can ever come: all that are leased are held by calls that wait
   * like this. A service that does not tell its counts (beyond the given interface) leaves it to the time limit.
   */
  async deadlock(): Promise<NestedLeaseError | undefined> {
    const { acquired_count: leased, browser_pool_config: { size } = {} } = await this.#pool.describe();
    const waiting = [...blocked].filter((lease) => isOf(lease, this.#pool)).length;
    // Fewer leased than its size: the pool is filling up, and a browser will come.
    if (leased === undefined || size === undefined || leased < size || leased > waiting) return undefined;
    return new NestedLeaseError(
      `No browser of pool ${this.#pool.idOrName} can become available: each of the ${leased} that are leased waits ` +
        `for another one. ${this.where} Lease one after the other, or enlarge the pool.`,
      this.#outer.session.session_id,
      { pool: this.#pool.idOrName },
    );
  }
}

function isOf({ baseUrl, idOrName, session }: OuterLease, pool: BrowserPool): boolean {
  return baseUrl === pool.baseUrl && [idOrName, session.pool?.id, session.pool?.name].includes(pool.idOrName);
}
