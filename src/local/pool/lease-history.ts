import type { DestroyReason } from '../events.js';
import type { Lease, LeaseRequest, LiveLinks } from './lease.js';

/** How a lease ended: the pool kept its browser (`reused`), or destroyed the browser for this reason. */
export type LeaseOutcome = 'reused' | DestroyReason;

/** A lease that has ended. */
export interface EndedLease {
  readonly id: string;
  readonly sessionId: string;
  /** Name of the pool. */
  readonly pool: string;
  readonly request: LeaseRequest;
  readonly links: LiveLinks;
  readonly outcome: LeaseOutcome;
  readonly endedAt: Date;
  /** In milliseconds. */
  readonly duration: number;
}

/** Number of ended leases to keep. The oldest are dropped. */
const MAX_ENDED = 100;

/** The leases that ended last. */
export class LeaseHistory {
  readonly #ended: EndedLease[] = [];

  /** The last lease first. */
  get list(): readonly EndedLease[] {
    return this.#ended;
  }

  add(pool: string, { id, browser, request, links, since }: Lease, outcome: LeaseOutcome): void {
    const duration = Math.round(performance.now() - since);
    const { sessionId } = browser;
    this.#ended.unshift({ id, sessionId, pool, request, links, outcome, endedAt: new Date(), duration });
    this.#ended.splice(MAX_ENDED);
  }
}
