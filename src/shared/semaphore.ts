/** A semaphore that serves its callers in order. */
export class Semaphore {
  #taken = 0;
  readonly #queue: ((leave: () => void) => void)[] = [];

  /** Waits for one of `most` places. The returned function frees it, once. */
  async take(most: number): Promise<() => void> {
    if (this.#taken < most) return this.#enter();
    return new Promise((resolve) => this.#queue.push(resolve));
  }

  #enter(): () => void {
    this.#taken++;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#taken--;
      this.#queue.shift()?.(this.#enter());
    };
  }
}
