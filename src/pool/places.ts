import { raceAbort } from '../shared/abort.js';

/** A semaphore that serves its callers in order. */
export class Places {
  taken = 0;
  #most = Number.POSITIVE_INFINITY;
  readonly #queue = new Set<(leave: () => void) => void>();

  /**
   * Waits for a place. The returned function frees it, once.
   *
   * @param most Number of places.
   */
  async take(most: number, signal: AbortSignal): Promise<() => void> {
    this.#most = most;
    if (this.taken < most) return this.add();
    let call!: (leave: () => void) => void;
    const turn = new Promise<() => void>((resolve) => (call = resolve));
    this.#queue.add(call);
    return raceAbort(turn, signal, (leave) => leave()).finally(() => this.#queue.delete(call));
  }

  /** Takes a place without waiting, also beyond the limit. The returned function frees it, once. */
  add(): () => void {
    this.taken++;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.taken--;
      if (this.taken < this.#most) this.#callNext();
    };
  }

  /** Gives a place to all who wait. */
  admitAll(): void {
    while (this.#queue.size > 0) this.#callNext();
  }

  #callNext(): void {
    const [next] = this.#queue;
    if (!next) return;
    this.#queue.delete(next);
    next(this.add());
  }
}
