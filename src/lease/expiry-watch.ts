import { startTimer } from '../shared/abort.js';

/** A warning comes this long before the end, in ms; for short sessions when half of the time is over. */
const WARNING = 10_000;

/** Tells, while nothing is connected, that a session is about to expire (beyond the given interface: inactivity). */
export class ExpiryWatch {
  readonly #timeout: number;
  readonly #onExpiring: (timeLeft: number) => void;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param timeout Milliseconds of inactivity after which the session ends.
   * @param onExpiring Called with the milliseconds left.
   */
  constructor(timeout: number, onExpiring: (timeLeft: number) => void) {
    this.#timeout = timeout;
    this.#onExpiring = onExpiring;
  }

  /** Nothing is connected from now on. */
  start(): void {
    const timeLeft = Math.min(WARNING, this.#timeout / 2);
    this.stop();
    // The warning is no reason to keep a process alive.
    this.#timer = startTimer(this.#timeout - timeLeft, () => this.#onExpiring(timeLeft))?.unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
