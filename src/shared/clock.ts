import { hrtime, timers } from './globals.js';

/**
 * Node's timers and the monotonic clock, as they were when this module loaded: fake timers that a test of the caller leaves
 * on must not stop a release. What a lease and its release wait for uses this object.
 *
 * @internal Not declared in the package, which must compile without Node's types.
 */
export const clock = {
  setTimeout: timers.setTimeout,
  clearTimeout: timers.clearTimeout,
  setImmediate: timers.setImmediate,
  clearImmediate: timers.clearImmediate,
  setInterval: timers.setInterval,
  clearInterval: timers.clearInterval,
  /** Milliseconds of a clock that never jumps. Node loads `performance` when it is first read, which an import must not cost. */
  now: () => Number(hrtime.bigint()) / 1e6,
};

const soon = timers.setImmediate;

/** Resolves in the next macrotask: after the callbacks that are due now. */
export function nextMacrotask(): Promise<void> {
  return new Promise((resolve) => soon(resolve));
}

/** The longest time that `setTimeout` and what is built on it accept, in ms. Longer ones elapse immediately. */
export const LONGEST_TIMER = 2 ** 31 - 1;

/** @internal `setTimeout` that never fires for a time beyond its range. Node's own fires immediately. */
export function startTimer(milliseconds: number, onEnd: () => void): NodeJS.Timeout | undefined {
  return milliseconds > LONGEST_TIMER ? undefined : clock.setTimeout(onEnd, milliseconds);
}

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
  #isPaused = false;

  /** Starts a timer. @param milliseconds Without the time of pauses. @returns A function that stops the timer. */
  start(milliseconds: number, onEnd: () => void): () => void {
    const one: Pausable = { left: milliseconds, since: undefined, timer: undefined, onEnd };
    this.#timers.add(one);
    if (!this.#isPaused) this.#run(one);
    return () => {
      clock.clearTimeout(one.timer);
      this.#timers.delete(one);
    };
  }

  /** All timers stand still until the returned function is called. There is one pause at a time. */
  pause(): () => void {
    this.#isPaused = true;
    for (const one of this.#timers) {
      clock.clearTimeout(one.timer);
      one.left = Math.max(0, one.left - (clock.now() - one.since!));
      one.since = undefined;
    }
    return () => {
      this.#isPaused = false;
      for (const one of this.#timers) this.#run(one);
    };
  }

  #run(one: Pausable): void {
    one.since = clock.now();
    one.timer = startTimer(one.left, () => {
      this.#timers.delete(one);
      one.onEnd();
    });
  }
}

/** Resolves after a time in ms, or when `wake` calls its argument. Rejects with the reason of the signal. */
export function delay(
  milliseconds: number,
  signal?: AbortSignal,
  wake?: (resolve: () => void) => () => void,
): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    const end = () => {
      clock.clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      stopWaking?.();
    };
    const finish = () => {
      end();
      resolve();
    };
    const onAbort = () => {
      end();
      // The reason may be any value, and is passed on unchanged.
      reject(signal!.reason);
    };
    const timer = startTimer(milliseconds, finish);
    const stopWaking = wake?.(finish);
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) onAbort();
  });
}

/** Whether a test of the caller has replaced the global timers, which other libraries use. */
export function hasFakeTimers(): boolean {
  return globalThis.setImmediate !== clock.setImmediate;
}

/** Backoff between attempts, in the terms of p-retry; times in ms. */
export interface Backoff {
  readonly factor: number;
  readonly minTimeout: number;
  readonly maxTimeout: number;
  readonly randomize: boolean;
}

/** Milliseconds to wait after this many failures in a row, from 1. A random factor is between 1 and 2, as in p-retry. */
export function backoff({ factor, minTimeout, maxTimeout, randomize }: Backoff, failures: number): number {
  const random = randomize ? 1 + Math.random() : 1;
  return Math.min(maxTimeout, random * minTimeout * factor ** Math.max(0, failures - 1));
}
