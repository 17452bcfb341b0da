import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/** The callback took longer than the option `timeout` allows. */
export class CallbackTimeoutError extends PooledBrowserError {
  override readonly name = 'CallbackTimeoutError' as const;
  declare readonly code: 'ERR_CALLBACK_TIMEOUT';

  /** The limit, in milliseconds. */
  readonly timeout: number;

  constructor(timeout: number, facts?: ErrorFacts) {
    super(
      `The callback did not finish within ${timeout} ms (option timeout). Its connection to the browser was cut.`,
      'ERR_CALLBACK_TIMEOUT',
      facts,
    );
    this.timeout = timeout;
  }
}
