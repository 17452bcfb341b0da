import { raceTimeout } from '../shared/abort.js';
import { duration } from '../shared/errors.js';
import { CleanupError } from '../shared/lease-errors.js';
import type { LeaseContext } from './context.js';
import { messageOf } from './hooks.js';

/**
 * Returns a function that takes a step of the end of a lease. The step may throw, reject or hang: the function never rejects, so
 * that the next step follows. It resolves to undefined then.
 */
export function endSteps({ sessionId, addError }: Pick<LeaseContext, 'sessionId' | 'addError'>) {
  /**
   * @param name For the error.
   * @param timeout Longest time in ms. Default: none, for a step whose parts have timeouts of their own.
   */
  return async <Result>(
    name: string,
    take: () => Result | Promise<Result>,
    timeout = Number.POSITIVE_INFINITY,
  ): Promise<Result | undefined> => {
    const late = () => new Error(`it took longer than ${duration(timeout)}`);
    try {
      return await raceTimeout(timeout, async () => take(), late);
    } catch (cause) {
      const message = `A step of the end of the lease failed (${name}): ${messageOf(cause)}`;
      addError(new CleanupError(message, { sessionId, cause }));
      return undefined;
    }
  };
}
