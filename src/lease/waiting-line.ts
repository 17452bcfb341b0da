import { raceAbort } from '../shared/abort.js';
import type { BrowserPool } from '../service/browser-pool.js';

/** Calls of this process that ask one pool at the same time: enough to take whatever becomes free at once. */
const MOST_ASKING = 32;

/**
 * The calls of this process for browsers of one pool, first come, first served. A request that ended in vain is followed
 * by one that the service puts behind all others, so that calls which waited long would be passed over again and again:
 * only the first in line ask, and each keeps its place until it has a browser.
 */
export class WaitingLine {
  static readonly #lines = new Map<string, WaitingLine>();

  /** The line of all callers of one pool. */
  static of({ baseUrl, idOrName }: BrowserPool): WaitingLine {
    const key = JSON.stringify([baseUrl, idOrName]);
    const line = this.#lines.get(key) ?? new WaitingLine();
    this.#lines.set(key, line);
    return line;
  }

  #asking = 0;
  readonly #waiting = new Set<() => void>();

  /** How many are in line, those who ask included. */
  get length(): number {
    return this.#asking + this.#waiting.size;
  }

  /** A place among those who ask, if there is one. The returned function hands it on. */
  enter(): (() => void) | undefined {
    if (this.#asking === MOST_ASKING) return undefined;
    this.#asking++;
    return () => this.#handOn();
  }

  /** Waits for such a place. Whoever leaves the line just as its turn came hands the place on. */
  async turn(signal: AbortSignal): Promise<() => void> {
    let take!: () => void;
    const turn = new Promise<void>((resolve) => {
      take = resolve;
    });
    this.#waiting.add(take);
    try {
      await raceAbort(turn, signal, () => this.#handOn());
    } finally {
      this.#waiting.delete(take);
    }
    return () => this.#handOn();
  }

  #handOn(): void {
    const [next] = this.#waiting;
    if (!next) return void this.#asking--;
    this.#waiting.delete(next);
    next();
  }
}
