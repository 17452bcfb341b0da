/**
 * Tasks on many machines, spread by a queue of BullMQ.
 *
 * @module pooled-browser/bullmq
 */
export { enqueueInputs } from './map/queue/enqueue.js';
export { workPooledBrowsers, type WorkSummary } from './map/queue/work.js';
export { collectOutcomes } from './map/queue/collect.js';
export type {
  CollectOptions,
  EnqueueOptions,
  QueueBackoff,
  QueueLimiter,
  WorkOptions,
} from './map/queue/options.js';
export type { QueueProgress } from './map/queue/queue-progress.js';
export type { QueuedOutcome } from './map/queue/queued-job.js';
export type { RedisAddress } from './map/queue/redis.js';
