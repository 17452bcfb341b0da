/** Milliseconds that one value of the history stands for. */
const SLOT = 10_000;

/** Number of values: ten minutes. */
const SLOTS = 60;

/** How long acquire requests waited during the last ten minutes. */
export class WaitHistory {
  /** The longest wait in each slot, in ms. */
  readonly #longest = new Map<number, number>();

  /** Adds a wait that has just ended. */
  note(milliseconds: number): void {
    const now = currentSlot();
    this.#longest.set(now, Math.max(milliseconds, this.#longest.get(now) ?? 0));
    for (const slot of this.#longest.keys()) if (slot <= now - SLOTS) this.#longest.delete(slot);
  }

  /**
   * Returns the longest wait in each ten seconds, in ms; the oldest first.
   *
   * @param longestNow Milliseconds that the first request in the queue has waited so far, or 0.
   */
  read(longestNow: number): readonly number[] {
    const first = currentSlot() - SLOTS + 1;
    const waits = Array.from({ length: SLOTS }, (_, index) => this.#longest.get(first + index) ?? 0);
    return waits.with(SLOTS - 1, Math.max(longestNow, waits.at(-1)!)).map(Math.round);
  }
}

function currentSlot(): number {
  return Math.floor(performance.now() / SLOT);
}
