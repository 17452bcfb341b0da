import { setMaxListeners } from 'node:events';
import { startTimer } from './race.js';

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
