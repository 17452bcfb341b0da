import { InterruptedError } from './cli-error.js';
import { exitCodeOf } from './exit-codes.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Milliseconds in which the same signal is an echo: npm passes on to us what the terminal has sent us already. */
const ECHO = 300;

/**
 * Runs work that Ctrl-C, SIGTERM and SIGHUP call off: the signal aborts with an `InterruptedError`, and the work tidies
 * up. A second one ends the program at once; browsers are ended even then, on the way out.
 */
export async function interruptible(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const abort = new AbortController();
  let since = 0;
  const onSignal = (name: NodeJS.Signals) => {
    if (abort.signal.aborted && performance.now() - since > ECHO) process.exit(exitCodeOf(name));
    if (abort.signal.aborted) return;
    since = performance.now();
    abort.abort(new InterruptedError(name));
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  try {
    await work(abort.signal);
  } finally {
    for (const name of SIGNALS) process.off(name, onSignal);
  }
}
