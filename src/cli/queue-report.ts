import type { OutcomeRecord } from '../map/outcome.js';
import type { MapProgress } from '../map/progress.js';
import type { CollectOptions } from '../map/queue/options.js';
import type { QueueProgress } from '../map/queue/queue-progress.js';
import type { MapReport } from './map-report.js';
import type { KnownInputs } from './queue-inputs.js';

/** Reports the progress of a whole queue, with the tasks that run in this process. */
export class QueueReport {
  readonly #report: MapReport;
  readonly #known: KnownInputs;
  readonly #total: number | undefined;
  #done = 0;
  #failed = 0;
  #own: MapProgress | undefined;
  #queue: QueueProgress | undefined;

  /** @param total Number of inputs, if it is known. */
  constructor(report: MapReport, known: KnownInputs, total: number | undefined) {
    this.#report = report;
    this.#known = known;
    this.#total = total;
  }

  get options(): Pick<CollectOptions, 'total' | 'onProgress'> {
    const total = this.#total === undefined ? undefined : Math.max(0, this.#total - this.#known.doneBefore);
    return { total, onProgress: this.#showQueue };
  }

  /** Takes the progress of the worker in this process. */
  readonly showOwn = (progress: MapProgress): void => {
    this.#own = progress;
    this.#show();
  };

  /** Counts a result. */
  add(record: OutcomeRecord): void {
    this.#done++;
    if (record.status === 'rejected') this.#failed++;
    this.#report.add(record);
  }

  readonly #showQueue = (progress: QueueProgress): void => {
    this.#queue = progress;
    this.#show();
  };

  #show(): void {
    if (!this.#queue) return;
    const { retried = 0, leases = 0, attempts = [], lastFailure, slowestHost } = this.#own ?? {};
    this.#report.show({
      ...this.#queue,
      done: this.#done,
      failed: this.#failed,
      skipped: this.#known.doneBefore,
      retried,
      leases,
      attempts,
      ...(lastFailure && { lastFailure }),
      ...(slowestHost && { slowestHost }),
      ...(this.#total !== undefined && { total: this.#total }),
    });
  }
}
