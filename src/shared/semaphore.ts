import { raceAbort } from './abort.js';

/** A caller who waits for a place. */
interface Waiting {
  /** Its limit: callers of pools with different limits can share the places. */
  readonly most: number;
  readonly enter: (leave: () => void) => void;
}

/** A semaphore that serves its callers in order. */
export class Semaphore {
  taken = 0;
  readonly #queue = new Set<Waiting>();

  /**
   * Waits for a place. The returned function frees it, once.
   *
   * @param most Number of places.
   */
  async take(most: number, signal?: AbortSignal): Promise<() => void> {
    if (this.taken < most) return this.add();
    let enter!: (leave: () => void) => void;
    const turn = new Promise<() => void>((resolve) => (enter = resolve));
    const waiting = { most, enter };
    this.#queue.add(waiting);
    return raceAbort(turn, signal, (leave) => leave()).finally(() => this.#queue.delete(waiting));
  }

  /** Takes a place without waiting, also beyond the limit. The returned function frees it, once. */
  add(): () => void {
    this.taken++;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.taken--;
      const next = [...this.#queue].find(({ most }) => this.taken < most);
      if (next) this.#admit(next);
    };
  }

  /** Gives a place to all who wait. */
  admitAll(): void {
    for (const waiting of this.#queue) this.#admit(waiting);
  }

  #admit(waiting: Waiting): void {
    this.#queue.delete(waiting);
    waiting.enter(this.add());
  }
}
