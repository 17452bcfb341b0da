import { callListener } from '../../shared/telemetry.js';
import type { InputQueue } from './input-lists.js';
import type { QueuedOutcome } from './queued-job.js';
import { clock } from '../../shared/clock.js';
import { readJobs } from './unreadable-job.js';

/** The progress of a whole queue, on all machines. */
export interface QueueProgress {
  /** Number of outcomes that this loop has received of inputs that succeeded. */
  succeeded: number;
  /** The same of inputs that failed. */
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

/** Time between two reports, in ms. */
const INTERVAL = 1000;
/** Most running inputs whose workers are counted. */
const MOST_RUNNING = 1000;

interface ReportSettings {
  readonly total?: number | undefined;
  readonly onProgress?: ((progress: QueueProgress) => void) | undefined;
}

/** Reports the progress from time to time. */
export class ProgressReporter {
  readonly #queue: InputQueue;
  readonly #settings: ReportSettings;
  readonly #began = clock.now();
  #succeeded = 0;
  #failed = 0;
  #next = 0;

  constructor(queue: InputQueue, settings: ReportSettings) {
    this.#queue = queue;
    this.#settings = settings;
  }

  /** Counts an outcome that the loop receives. */
  count({ status }: QueuedOutcome): void {
    if (status === 'rejected') this.#failed++;
    else this.#succeeded++;
  }

  async report(): Promise<void> {
    const { onProgress } = this.#settings;
    const now = clock.now();
    if (!onProgress || now < this.#next) return;
    this.#next = now + INTERVAL;
    callListener(onProgress, await this.#read(now - this.#began), 'onProgress');
  }

  /** Sends the last report. */
  async end(): Promise<void> {
    this.#next = 0;
    await this.report().catch(() => {});
  }

  /** @param elapsed Milliseconds since the loop began. */
  async #read(elapsed: number): Promise<QueueProgress> {
    const { queue, redis } = this.#queue;
    const [succeeded, failed] = [this.#succeeded, this.#failed];
    const [counts, active] = await Promise.all([
      redis.guard(queue.getJobCounts()),
      readJobs(queue, redis, 'active', MOST_RUNNING),
    ]);
    const { active: running = 0, completed = 0, failed: failing = 0, ...others } = counts;
    const workers = new Map<string, number>();
    for (const { job } of active) {
      const name = job?.processedBy ?? 'unknown';
      workers.set(name, (workers.get(name) ?? 0) + 1);
    }
    const { total } = this.#settings;
    const rate = elapsed === 0 ? 0 : ((succeeded + failed) / elapsed) * 1000;
    const left =
      total === undefined ? undefined : Math.max(total - succeeded - failed, running + completed + failing);
    return {
      succeeded,
      failed,
      running,
      workers: Object.fromEntries(workers),
      rate,
      waiting: Object.values(others).reduce((sum, count) => sum + count, 0),
      ...(total !== undefined && { total }),
      ...(left !== undefined && rate > 0 && { timeLeft: (left / rate) * 1000 }),
    };
  }
}
