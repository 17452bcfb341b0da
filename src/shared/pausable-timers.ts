import { clock, startTimer } from './clock.js';

interface Pausable {
  left: number;
  /** When it was started last; undefined while it stands still. */
  since: number | undefined;
  timer: NodeJS.Timeout | undefined;
  readonly onEnd: () => void;
}

/** Timers that stand still together. */
export class PausableTimers {
  readonly #timers = new Set<Pausable>();
  #pauses = 0;

  /** Starts a timer. @param milliseconds Without the time of pauses. @returns A function that stops the timer. */
  start(milliseconds: number, onEnd: () => void): () => void {
    const one: Pausable = { left: milliseconds, since: undefined, timer: undefined, onEnd };
    this.#timers.add(one);
    if (this.#pauses === 0) this.#run(one);
    return () => {
      clock.clearTimeout(one.timer);
      this.#timers.delete(one);
    };
  }

  /** All timers stand still until the returned function is called, of each pause. */
  pause(): () => void {
    if (this.#pauses++ === 0) for (const one of this.#timers) this.#stop(one);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      if (--this.#pauses === 0) for (const one of this.#timers) this.#run(one);
    };
  }

  #run(one: Pausable): void {
    one.since = clock.now();
    one.timer = startTimer(one.left, () => {
      this.#timers.delete(one);
      one.onEnd();
    });
  }

  #stop(one: Pausable): void {
    clock.clearTimeout(one.timer);
    one.left = Math.max(0, one.left - (clock.now() - one.since!));
    one.since = undefined;
  }
}
