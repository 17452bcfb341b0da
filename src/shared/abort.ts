import { clock, LONGEST_TIMER, nextMacrotask, startTimer } from './clock.js';
import { duration } from './errors.js';
import { createAbort } from './globals.js';

// Not imported: an import of a module of Node takes as long as one of our own files.
const events = process.getBuiltinModule('node:events');

/** What happens when a signal of the caller aborts. */
const onAborts = new WeakMap<AbortSignal, { readonly calls: Set<() => void>; readonly remove: () => void }>();

/**
 * Calls a function when a signal aborts, or at once if it has aborted. The returned function removes it. Many calls may share
 * one signal of the caller: it gets one listener from us, because Node warns of a leak from the eleventh on.
 */
export function onAbort(signal: AbortSignal | undefined, call: () => void): () => void {
  if (signal?.aborted) call();
  if (!signal || signal.aborted) return () => {};
  const { calls, remove } = onAborts.get(signal) ?? listenTo(signal);
  calls.add(call);
  return () => {
    if (calls.delete(call) && calls.size === 0) remove();
  };
}

function listenTo(signal: AbortSignal) {
  const calls = new Set<() => void>();
  const notify = () => {
    remove();
    for (const call of calls) call();
  };
  const remove = () => {
    onAborts.delete(signal);
    signal.removeEventListener('abort', notify);
  };
  const listening = { calls, remove };
  onAborts.set(signal, listening);
  signal.addEventListener('abort', notify);
  return listening;
}

const NONE: readonly (() => void)[] = [];

/** What reports an abort, also without its signal. */
export type Abortable = Pick<LinkedAbort, 'isAborted' | 'signal' | 'onAbort' | 'throwIfAborted'>;

/**
 * An abort signal that also aborts with its parent, and after a timeout. Its creator disposes it. A signal takes 2 kB, and is created when
 * it is first used: thousands of calls may wait.
 */
export class LinkedAbort {
  #controller: AbortController | undefined;
  /** Rarely more than one. */
  #calls: readonly (() => void)[] = NONE;
  readonly #leaveParent: () => void;
  readonly #timeout: number;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #started = clock.now();
  #expiry: NodeJS.Immediate | undefined;
  #timedOut = false;

  /** @param timeout Milliseconds until the signal aborts; no timeout by default. */
  constructor(parent?: AbortSignal | Abortable, timeout = Number.POSITIVE_INFINITY) {
    this.#timeout = timeout;
    this.#leaveParent =
      parent && 'onAbort' in parent
        ? parent.onAbort(() => this.abort(parent.signal.reason))
        : onAbort(parent, () => this.abort(parent!.reason));
    // After the event loop was blocked, timers fire first. A response that has arrived meanwhile is read before this one.
    this.#timer = startTimer(timeout, () => (this.#expiry = clock.setImmediate(() => this.#expire())));
  }

  get signal(): AbortSignal {
    return this.#own.signal;
  }

  get isAborted(): boolean {
    return this.#controller?.signal.aborted === true;
  }

  throwIfAborted(): void {
    this.#controller?.signal.throwIfAborted();
  }

  /** Calls a function at the abort, or at once if that was before. The returned function removes it. */
  onAbort(call: () => void): () => void {
    if (this.isAborted) {
      call();
      return () => {};
    }
    this.#calls = [...this.#calls, call];
    return () => (this.#calls = this.#calls.filter((one) => one !== call));
  }

  /** True when the timeout aborted the signal before anything else did. */
  get timedOut(): boolean {
    return this.#timedOut;
  }

  /** Milliseconds since the start, by the monotonic clock. */
  get elapsed(): number {
    return clock.now() - this.#started;
  }

  /** Milliseconds until the timeout, never below 0. */
  get timeLeft(): number {
    return Math.max(0, this.#timeout - this.elapsed);
  }

  /** Aborts the signal. Only the first reason counts. */
  abort(reason: unknown): void {
    if (this.isAborted) return;
    this.#own.abort(reason);
    for (const call of this.#calls) call();
  }

  /** Removes the timeout; the parent and `abort` still abort the signal. */
  clearTimeout(): void {
    clock.clearTimeout(this.#timer);
    clock.clearImmediate(this.#expiry);
  }

  dispose(): void {
    this.clearTimeout();
    this.#leaveParent();
  }

  get #own(): AbortController {
    if (!this.#controller) {
      this.#controller = createAbort();
      // This signal belongs to us, and every step of a call listens to it.
      events.setMaxListeners(0, this.#controller.signal);
    }
    return this.#controller;
  }

  #expire(): void {
    this.#timedOut = !this.isAborted;
    this.abort(new DOMException('The timeout has elapsed', 'TimeoutError'));
  }
}

/**
 * Settles as `work` does, or rejects with the signal's reason as soon as it aborts.
 *
 * @param onLate Receives the result of work that succeeds after the abort: either the caller or `onLate` gets it.
 */
export function raceAbort<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  onLate?: (value: T) => void,
): Promise<T> {
  if (!signal) return work;
  return new Promise<T>((resolve, reject) => {
    // The reason may be any value, and is passed on unchanged.
    const stopListening = onAbort(signal, () => reject(signal.reason));
    work.then(
      (value) => {
        stopListening();
        if (signal.aborted) onLate?.(value);
        resolve(value);
      },
      (error: unknown) => {
        stopListening();
        reject(error);
      },
    );
  });
}

/** Macrotasks in which the event loop reads what arrived while it was blocked. A WebSocket delivers one message in each. */
const READING_MACROTASKS = 100;

/** Settles as `work` does within `milliseconds`; otherwise throws the error that `onTimeout` creates. */
export async function raceTimeout<T>(
  milliseconds: number,
  work: () => Promise<T>,
  onTimeout = () => new Error(`The other side did not respond within ${duration(milliseconds)}.`),
): Promise<T> {
  if (milliseconds > LONGEST_TIMER) return work();
  let timer: NodeJS.Timeout | undefined;
  let isSettled = false;
  const timeout = new Promise<never>((_resolve, reject) => {
    const expire = async () => {
      // After the event loop was blocked, timers fire before the answers that have arrived meanwhile are read.
      for (let count = 0; count < READING_MACROTASKS && !isSettled; count++) await nextMacrotask();
      if (!isSettled) reject(onTimeout());
    };
    timer = startTimer(milliseconds, () => void expire());
  });
  try {
    return await Promise.race([work(), timeout]);
  } finally {
    isSettled = true;
    clock.clearTimeout(timer);
  }
}

/** Settles as `work` does, or, when `ended` resolves before it, throws the error that `onEnd` creates. */
export async function raceEnd<T, End>(
  work: Promise<T>,
  ended: Promise<End>,
  onEnd: (end: End) => Error,
): Promise<T> {
  let isSettled = false;
  const settled = work.finally(() => (isSettled = true));
  // Every connection ends at some time. Creating the error only for a receiver saves its stack trace.
  const end = ended.then((how) => (isSettled ? settled : Promise.reject(onEnd(how))));
  return Promise.race([settled, end]);
}

/** Waits until all work has settled, and then throws the first error: the caller's next step must not meet what the others still do. */
export async function allSettled(work: readonly Promise<unknown>[]): Promise<void> {
  const results = await Promise.allSettled(work);
  const failed = results.find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
}

/** Milliseconds for which the promise of an aborted call may stay pending, so that the release usually completes first. */
const ABORT_GRACE = 1000;

/** Settles as `work` does; after an abort rejects with the signal's reason, at most 1 s later. The work continues. */
export function withAbortGrace<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (!signal) return work;
  return new Promise<T>((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const stopListening = onAbort(signal, () => {
      // The reason may be any value, and is passed on unchanged.
      timer = clock.setTimeout(() => reject(signal.reason), ABORT_GRACE);
    });
    const end = () => {
      clock.clearTimeout(timer);
      stopListening();
    };
    work.then(
      (value) => (end(), resolve(value)),
      (error: unknown) => (end(), reject(error)),
    );
  });
}
