import { raceAbort } from '../shared/abort.js';

/** Maximum number of calls of this process that send acquire requests to one pool at the same time. */
const MOST_ACTIVE = 32;

/**
 * The queue of this process for one pool, first come, first served. A service queues each repeated acquire request
 * behind all others, so that a call which waits for a long time might never be served. Therefore only the first calls
 * in this queue send requests, and each keeps its place until it has a browser.
 */
export class FairSemaphore {
  #active = 0;
  readonly #waiting = new Set<() => void>();

  /** Number of calls in the queue, including those that send requests. */
  get length(): number {
    return this.#active + this.#waiting.size;
  }

  get isFull(): boolean {
    return this.#active === MOST_ACTIVE;
  }

  /** Waits for a place. The returned function frees it. */
  async enter(signal: AbortSignal): Promise<() => void> {
    const leave = () => this.#leave();
    if (!this.isFull) {
      this.#active++;
      return leave;
    }
    let take!: () => void;
    const turn = new Promise<void>((resolve) => {
      take = resolve;
    });
    this.#waiting.add(take);
    try {
      await raceAbort(turn, signal, leave);
    } finally {
      this.#waiting.delete(take);
    }
    return leave;
  }

  #leave(): void {
    const [next] = this.#waiting;
    if (!next) return void this.#active--;
    this.#waiting.delete(next);
    next();
  }
}
