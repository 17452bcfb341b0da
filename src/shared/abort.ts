import { setMaxListeners } from 'node:events';

/** An AbortController that also aborts with its parent signal, and after a time; `dispose` ends both ties. */
export class LinkedAbort {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  #timedOut = false;

  /** @param timeout Milliseconds until the signal aborts by itself; none by default. */
  constructor(parent: AbortSignal | undefined, timeout = Number.POSITIVE_INFINITY) {
    this.#parent = parent;
    for (const signal of [parent, this.signal]) allowListeners(signal);
    // One that is aborted already will not call a listener, nor drop it.
    if (parent?.aborted) this.#onParentAbort();
    else parent?.addEventListener('abort', this.#onParentAbort, { once: true });
    this.#timer = startTimer(timeout, () => {
      this.#timedOut = !this.signal.aborted;
      this.abort(new DOMException('The time is up', 'TimeoutError'));
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** True when time was up before anything else aborted the signal. */
  get timedOut(): boolean {
    return this.#timedOut;
  }

  /** The first reason wins. */
  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /** From now on only the parent, or `abort`, aborts it. */
  liftTimeout(): void {
    clearTimeout(this.#timer);
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#parent?.removeEventListener('abort', this.#onParentAbort);
  }

  readonly #onParentAbort = () => this.abort(this.#parent!.reason);
}

/** Any number of calls may share a signal: Node would warn of a leak from the eleventh listener on. */
function allowListeners(signal: AbortSignal | undefined): void {
  // Signals of polyfills and test environments are no event targets of Node's, and don't count.
  if (signal instanceof EventTarget) setMaxListeners(0, signal);
}

/**
 * The work's outcome, or the signal's reason as soon as it aborts.
 * Work that succeeds after the abort is handed to `onLate`: exactly one of the two gets the value.
 */
export function raceAbort<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  onLate?: (value: T) => void,
): Promise<T> {
  if (!signal) return work;
  return new Promise<T>((resolve, reject) => {
    // A signal's reason may be any value: it is passed on as it is.
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(
      (value) => {
        signal.removeEventListener('abort', onAbort);
        if (signal.aborted) onLate?.(value);
        resolve(value);
      },
      (error: unknown) => {
        signal.removeEventListener('abort', onAbort);
        reject(error);
      },
    );
  });
}

/** The work's outcome within `milliseconds`; else what `onTimeout` returns is thrown. */
export async function raceTimeout<T>(
  milliseconds: number,
  work: () => Promise<T>,
  onTimeout: () => Error,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<never>((_resolve, reject) => {
    timer = startTimer(milliseconds, () => reject(onTimeout()));
  });
  try {
    return await Promise.race([work(), timeUp]);
  } finally {
    clearTimeout(timer);
  }
}

/** The work's outcome, or, when something ends before that, the error that `onEnd` makes of it. */
export async function raceEnd<T, End>(
  work: Promise<T>,
  ended: Promise<End>,
  onEnd: (end: End) => Error,
): Promise<T> {
  let isSettled = false;
  const settled = work.finally(() => (isSettled = true));
  // Everything ends at some time: no error is made, with its stack, that nobody is told of.
  const end = ended.then((how) => (isSettled ? settled : Promise.reject(onEnd(how))));
  return Promise.race([settled, end]);
}

/** `setTimeout` fires at once for anything past its range; this waits for ever instead. */
export function startTimer(milliseconds: number, onEnd: () => void): NodeJS.Timeout | undefined {
  return milliseconds > LONGEST_TIMER ? undefined : setTimeout(onEnd, milliseconds);
}

/** The longest that `setTimeout` can wait, in ms. */
export const LONGEST_TIMER = 2 ** 31 - 1;

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
