import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/** A task took longer than the option `taskTimeout` allows. */
export class TaskTimeoutError extends PooledBrowserError {
  override readonly name = 'TaskTimeoutError' as const;
  declare readonly code: 'ERR_TASK_TIMEOUT';

  /** The limit, in milliseconds. */
  readonly timeout: number;

  constructor(timeout: number, facts?: ErrorFacts) {
    super(
      `The task did not finish within ${timeout} ms (option taskTimeout). Its page was closed.`,
      'ERR_TASK_TIMEOUT',
      facts,
    );
    this.timeout = timeout;
  }
}
