/** A point in monotonic time: the wall clock may jump, this does not. */
export class Deadline {
  readonly #started = performance.now();
  readonly #limit: number;

  /** @param milliseconds From now; `Infinity` never passes. */
  constructor(milliseconds: number) {
    this.#limit = milliseconds;
  }

  /** Milliseconds since this deadline was set. */
  get elapsed(): number {
    return performance.now() - this.#started;
  }

  /** Milliseconds left, never below zero. */
  get remaining(): number {
    return Math.max(0, this.#limit - this.elapsed);
  }

  get passed(): boolean {
    return this.remaining === 0;
  }
}
