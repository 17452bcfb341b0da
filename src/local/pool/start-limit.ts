/** Runs at most so many jobs at a time, in order: starting browsers all at once starves each of them. */
export class StartLimit {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(most: number) {
    this.#most = most;
  }

  async run<T>(job: () => Promise<T>): Promise<T> {
    if (this.#running === this.#most) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      return await job();
    } finally {
      // The place is handed over, not freed: whoever comes in between would make it one too many.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }
}
