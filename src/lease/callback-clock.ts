import { clock, startTimer } from '../shared/clock.js';

interface Timeout {
  /** Milliseconds, at `since`. */
  left: number;
  since: number;
  timer: NodeJS.Timeout | undefined;
  readonly call: () => void;
}

/** The timeouts of the callbacks of one lease. They stand still while somebody else uses the browser. */
export class CallbackClock {
  readonly #timeouts = new Set<Timeout>();
  #pauses = 0;

  /** Calls a function after a time in ms, without the pauses. The returned function prevents that. */
  readonly start = (milliseconds: number, call: () => void): (() => void) => {
    const timeout: Timeout = { left: milliseconds, since: 0, timer: undefined, call };
    this.#timeouts.add(timeout);
    if (this.#pauses === 0) this.#run(timeout);
    return () => {
      this.#timeouts.delete(timeout);
      clock.clearTimeout(timeout.timer);
    };
  };

  /** Stops all timeouts, until the returned function is called. Pauses may overlap. */
  readonly pause = (): (() => void) => {
    if (this.#pauses++ === 0) for (const one of this.#timeouts) this.#stop(one);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      if (--this.#pauses === 0) for (const one of this.#timeouts) this.#run(one);
    };
  };

  #run(timeout: Timeout): void {
    timeout.since = clock.now();
    timeout.timer = startTimer(timeout.left, () => {
      this.#timeouts.delete(timeout);
      timeout.call();
    });
  }

  #stop(timeout: Timeout): void {
    clock.clearTimeout(timeout.timer);
    timeout.left -= clock.now() - timeout.since;
  }
}
