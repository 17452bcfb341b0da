import type { LocalPoolStats, Log } from '../events.js';
import { HttpFault, notFound } from '../http/answer.js';
import type { CheckedSettings, Quirks } from '../settings.js';
import { ServedPool, type LaunchBrowser } from './served-pool.js';
import { Semaphore } from '../../shared/semaphore.js';
import { LeaseHistory, type ServedLease } from './served-lease.js';

interface PoolSetOptions {
  readonly quirks: Pick<Quirks, 'keepsSessionId' | 'nameConflictStatus'>;
  readonly log: Log;
  readonly launch: LaunchBrowser;
  /** WebRTC of no browser sends UDP packets, whatever a lease needs. */
  readonly neverUdp: boolean;
}

/** All pools of a server. The name of a lease is unique among them. */
export class PoolSet {
  readonly history = new LeaseHistory();
  readonly #pools: readonly ServedPool[];
  readonly #quirks: PoolSetOptions['quirks'];

  constructor(pools: readonly CheckedSettings[], { quirks, log, launch, neverUdp }: PoolSetOptions) {
    this.#quirks = quirks;
    const { keepsSessionId } = quirks;
    const startLimit = new Semaphore();
    const nameConflict = (name: string | undefined) => this.#nameConflict(name);
    const shared = { launch, neverUdp, startLimit, history: this.history, log, keepsSessionId, nameConflict };
    this.#pools = pools.map((settings) => new ServedPool(settings, shared));
  }

  get names(): readonly string[] {
    return this.#pools.map(({ settings }) => settings.name);
  }

  [Symbol.iterator](): Iterator<ServedPool> {
    return this.#pools.values();
  }

  /** Starts to fill all pools. Resolves with the first browser; rejects when it does not start. */
  async fill(): Promise<void> {
    await Promise.race(this.#pools.map((pool) => pool.fill()));
  }

  /** @throws HttpFault 404 */
  pool(idOrName: string): ServedPool {
    const found = this.find(idOrName);
    if (!found) throw notFound(`There is no pool with this id or name. There are: ${this.names.join(', ')}.`);
    return found;
  }

  find(idOrName: string): ServedPool | undefined {
    return this.#pools.find(({ settings }) => settings.id === idOrName || settings.name === idOrName);
  }

  /** Finds the pool with the browser of this session. @throws HttpFault 404 */
  poolOfSession(sessionId: string): ServedPool {
    const found = this.#pools.find((pool) => pool.find(sessionId));
    if (!found) throw notFound('There is no browser session with this id.');
    return found;
  }

  lease(sessionId: string): ServedLease | undefined {
    return this.#pools.map((pool) => pool.lease(sessionId)).find((lease) => lease !== undefined);
  }

  get leases(): readonly ServedLease[] {
    return this.#pools.flatMap((pool) => [...pool.leases]);
  }

  get stats(): LocalPoolStats {
    const [first, ...others] = this.#pools.map(({ stats }) => stats);
    return others.reduce(add, first!);
  }

  async close(): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.close()));
  }

  #nameConflict(name: string | undefined): HttpFault | undefined {
    if (name === undefined || this.leases.every(({ request }) => request.name !== name)) return undefined;
    return new HttpFault(this.#quirks.nameConflictStatus, 'conflict', 'An active session has this name.', {
      details: [{ code: 'name_in_use', message: `name: an active session has the name ${name}` }],
    });
  }
}

function add(a: LocalPoolStats, b: LocalPoolStats): LocalPoolStats {
  const sums = Object.entries(a).map(([count, value]) => [count, value + b[count as keyof LocalPoolStats]]);
  return Object.fromEntries(sums) as LocalPoolStats;
}
