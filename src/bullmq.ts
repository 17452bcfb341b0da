/**
 * Tasks on many machines, spread by a queue of BullMQ.
 *
 * @module pooled-browser/bullmq
 */
export { enqueueInputs } from './jobs/queue/enqueue.js';
export { workPooledBrowsers, type WorkSummary } from './jobs/queue/work.js';
export { collectOutcomes } from './jobs/queue/collect.js';
export type {
  CollectOptions,
  EnqueueOptions,
  QueueBackoff,
  QueueLimiter,
  WorkOptions,
} from './jobs/queue/options.js';
export type { QueueProgress } from './jobs/queue/queue-progress.js';
export type { QueuedOutcome } from './jobs/queue/queued-job.js';
export type { RedisAddress } from './jobs/queue/redis.js';
