import { raceTimeout } from '../shared/abort.js';
import { duration } from '../shared/errors.js';
import { CleanupError } from '../shared/lease-errors.js';
import { messageOf } from './hooks.js';

/** A step of the end of a lease. */
export interface EndStep {
  /** For the error. */
  readonly name: string;
  /** Longest time in ms. Default: none, for a step whose parts have timeouts of their own. */
  readonly timeout?: number;
  /** May throw, reject or hang: the next step follows. */
  readonly take: () => unknown;
}

/** Takes one step after another, whatever each of them does. Never rejects. */
export async function takeSteps(
  steps: readonly EndStep[],
  { sessionId, addError }: { sessionId: string; addError: (error: Error) => void },
): Promise<void> {
  for (const { name, timeout = Number.POSITIVE_INFINITY, take } of steps) {
    const late = () => new Error(`it took longer than ${duration(timeout)}`);
    try {
      await raceTimeout(timeout, async () => take(), late);
    } catch (cause) {
      const message = `A step of the end of the lease failed (${name}): ${messageOf(cause)}`;
      addError(new CleanupError(message, { sessionId, cause }));
    }
  }
}
