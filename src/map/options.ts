import type { Isolation } from '../connect/connector.js';
import type { Protocol } from '../connect/protocol.js';
import type { LeaseOptions } from '../lease/options.js';
import type { CheckpointOptions } from './checkpoint.js';
import type { MapProgress } from './progress.js';

/**
 * Options of `mapPooledBrowsers`: those of each lease, and those of the tasks. Times are milliseconds.
 *
 * With `name`, the leases are called `<name>-1`, `<name>-2`, … `retry` is the back-off between attempts of a task, too.
 */
export interface MapOptions<Driver extends object = object, P extends Protocol = Protocol> extends Omit<
  LeaseOptions<Driver, P>,
  'context'
> {
  /** Browsers to lease at once. No more are leased than there are inputs waiting. Default: 4. */
  concurrency?: number | undefined;
  /** Tasks at once in one browser. Default: 1. */
  pagesPerLease?: number | undefined;
  /** How far one task is kept apart from the next in the same browser. Default: `'context'`. */
  isolation?: Isolation | undefined;
  /**
   * How often a task that failed is tried again, after a back-off, in another browser where its own was lost. A
   * browser that fails before the task has begun does not count. Default: 0.
   */
  retries?: number | undefined;
  /** Limit of each attempt: then its signal aborts and its page is closed. Default: none. */
  taskTimeout?: number | undefined;
  /** Tasks after which a browser is given back and another one leased. Default: no limit. */
  tasksPerLease?: number | undefined;
  /** Age at which a browser is given back, once its tasks have ended, and another one leased. Default: no limit. */
  maxLeaseAge?: number | undefined;
  /** Outcomes in the order of the inputs, instead of as they come. Default: `false`. */
  ordered?: boolean | undefined;
  /** Number of inputs, for `timeLeft`. Default: known of arrays, sets and maps. */
  total?: number | undefined;
  /**
   * A file of outcomes, one JSON object a line. Each outcome is appended before it is handed out, and inputs whose
   * outcome is there already are not run again, nor handed out: a job that was killed goes on where it was. Default: none.
   */
  checkpoint?: string | CheckpointOptions | undefined;
  /** Told how far the job is, at most every 100 ms, and at its end. Default: none. */
  onProgress?: ((progress: MapProgress) => void) | undefined;
}
