import { CliError, exitCodeOf } from './errors.js';
import { createAbort } from '../shared/globals.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * In ms. npm forwards Ctrl-C, which the terminal also sends directly: a second signal within this time is the same one.
 */
const ECHO = 300;

type SignalHandler = (name: NodeJS.Signals) => void;

/**
 * Turns Ctrl-C, SIGTERM and SIGHUP into an abort with a `CliError`, after which the command cleans up. A
 * second signal ends the program immediately; the exit handlers still end or release the browsers.
 */
export class Interruption implements Disposable {
  readonly #abort = createAbort();
  #last = Number.NEGATIVE_INFINITY;
  #divertTo: SignalHandler | undefined;

  constructor() {
    for (const name of SIGNALS) process.on(name, this.#onSignal);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Runs work during which signals go to `handler` and abort nothing. */
  async divert<T>(handler: SignalHandler, work: () => Promise<T>): Promise<T> {
    this.#divertTo = handler;
    return work().finally(() => (this.#divertTo = undefined));
  }

  [Symbol.dispose](): void {
    for (const name of SIGNALS) process.off(name, this.#onSignal);
  }

  readonly #onSignal: SignalHandler = (name) => {
    if (performance.now() - this.#last < ECHO) return;
    this.#last = performance.now();
    if (this.#divertTo) return this.#divertTo(name);
    if (this.signal.aborted) process.exit(exitCodeOf(name));
    this.#abort.abort(new CliError(`Interrupted by ${name}.`, exitCodeOf(name)));
  };
}
