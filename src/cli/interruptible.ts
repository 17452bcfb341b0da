import { InterruptedError } from './cli-error.js';
import { exitCodeOf } from './exit-codes.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Milliseconds in which another signal is an echo: npm passes on to us what the terminal has sent us already. */
const ECHO = 300;

type SignalHandler = (name: NodeJS.Signals) => void;

/** Does work while signals are the affair of `onSignal`, and call nothing off. */
export type Divert = <T>(onSignal: SignalHandler, work: () => Promise<T>) => Promise<T>;

/**
 * Runs work that Ctrl-C, SIGTERM and SIGHUP call off: the signal aborts with an `InterruptedError`, and the work tidies
 * up. A second one ends the program at once; browsers are ended, or given back, even then, on the way out.
 */
export async function interruptible<T>(
  work: (signal: AbortSignal, divert: Divert) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const callOff: SignalHandler = (name) => {
    if (abort.signal.aborted) process.exit(exitCodeOf(name));
    abort.abort(new InterruptedError(name));
  };
  let handler = callOff;
  let last = Number.NEGATIVE_INFINITY;
  const onSignal: SignalHandler = (name) => {
    if (performance.now() - last < ECHO) return;
    last = performance.now();
    handler(name);
  };
  const divert: Divert = async (other, work) => {
    handler = other;
    return work().finally(() => {
      handler = callOff;
    });
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  try {
    return await work(abort.signal, divert);
  } finally {
    for (const name of SIGNALS) process.off(name, onSignal);
  }
}
