import type { InputQueue } from './input-lists.js';

/** The progress of a whole queue, on all machines. */
export interface QueueProgress {
  /** Number of outcomes that this loop has received, including those of inputs that failed. */
  done: number;
  /** Number of inputs that failed, of those. */
  failed: number;
  /** Number of inputs that wait for a worker or for their next attempt. */
  waiting: number;
  /** Number of inputs that workers have. */
  running: number;
  /** The same by worker: its `workerName`, and the number of inputs. */
  workers: Readonly<Record<string, number>>;
  /** Average number of outcomes per second, since the loop began. */
  rate: number;
  /** Number of outcomes to expect, if it is known. */
  total?: number;
  /** Milliseconds left at this rate, if `total` is known and there is an outcome. */
  timeLeft?: number;
}

/** Outcomes that the loop has received. */
export interface CollectedCounts {
  readonly done: number;
  readonly failed: number;
  /** Milliseconds since the loop began. */
  readonly elapsed: number;
  readonly total: number | undefined;
}

/** Most running inputs whose workers are counted. */
const MOST_RUNNING = 1000;

export async function readProgress(
  { queue, redis }: InputQueue,
  { done, failed, elapsed, total }: CollectedCounts,
): Promise<QueueProgress> {
  const [counts, active] = await redis.guard(
    Promise.all([queue.getJobCounts(), queue.getActive(0, MOST_RUNNING - 1)]),
  );
  const { active: running = 0, completed = 0, failed: failing = 0, ...others } = counts;
  const workers: Record<string, number> = {};
  for (const { processedBy = 'unknown' } of active) workers[processedBy] = (workers[processedBy] ?? 0) + 1;
  const rate = elapsed === 0 ? 0 : (done / elapsed) * 1000;
  const left = total === undefined ? undefined : Math.max(total - done, running + completed + failing);
  return {
    done,
    failed,
    running,
    workers,
    rate,
    waiting: Object.values(others).reduce((sum, count) => sum + count, 0),
    ...(total !== undefined && { total }),
    ...(left !== undefined && rate > 0 && { timeLeft: (left / rate) * 1000 }),
  };
}
