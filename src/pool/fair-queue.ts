import { Pacer } from './pacer.js';
import { Semaphore } from '../shared/semaphore.js';

/** Maximum number of calls of this process that send acquire requests to one pool at the same time. */
const MOST_SENDERS = 32;

/**
 * The queue of this process for one pool, first come, first served. A service queues each repeated acquire request behind all
 * others, so that a call which waits for a long time might never be served. Therefore only the first calls in this queue send
 * requests, and each keeps its place until it has a browser.
 */
export class FairQueue {
  readonly #senders = new Semaphore();
  /** Leases, for pools with a limit: those that are acquired or held. */
  readonly #leases = new Semaphore();
  /** Paces the requests while the service is full. */
  readonly pacer = new Pacer();
  /** How to end the places of detached leases, by session id. */
  readonly #kept = new Map<string, () => void>();
  #length = 0;

  /** Number of calls in the queue, including those that send requests. */
  get length(): number {
    return this.#length;
  }

  /** True if the next call has to wait for others of this process. */
  isFull(limit: number): boolean {
    return this.#length >= MOST_SENDERS || this.#leases.taken >= limit;
  }

  /**
   * Waits for a place.
   *
   * @param limit Most leases of this process at once.
   * @returns Two functions: `leaveQueue`, when the call has a browser or gives up, and `freePlace`, when its lease has ended.
   */
  async enter(
    limit: number,
    signal: AbortSignal,
  ): Promise<{ leaveQueue: () => void; freePlace: () => void }> {
    this.#length++;
    let freePlace: (() => void) | undefined;
    try {
      freePlace = await this.#leases.take(limit, signal);
      const leaveSenders = await this.#senders.take(MOST_SENDERS, signal);
      const leaveQueue = () => {
        this.#length--;
        leaveSenders();
      };
      return { leaveQueue, freePlace };
    } catch (error) {
      this.#length--;
      freePlace?.();
      throw error;
    }
  }

  /** Keeps the place of a detached lease: no other lease of this process may use its browser. */
  keep(sessionId: string, freePlace: () => void): void {
    this.#kept.set(sessionId, freePlace);
  }

  /**
   * Returns the function that ends a lease which began elsewhere, or was detached here. Such a lease has its browser already,
   * so it does not wait for a place. Returns undefined if `isAlone`, and the limit is reached by other leases.
   */
  join(sessionId: string, { limit, isAlone }: { limit: number; isAlone: boolean }): (() => void) | undefined {
    const kept = this.#kept.get(sessionId);
    this.#kept.delete(sessionId);
    if (kept) return kept;
    return isAlone && this.#leases.taken >= limit ? undefined : this.#leases.add();
  }
}
