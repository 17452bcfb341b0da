import { setImmediate as soon, setTimeout as sleep } from 'node:timers/promises';
import { backoffDelay } from '../lease/backoff.js';
import type { Connector } from '../connect/connector.js';
import { LinkedAbort } from '../shared/abort.js';
import type { Lease } from '../lease/lease.js';
import { openLease } from '../lease/open-lease.js';
import type { BrowserPool } from '../service/browser-pool.js';
import { Backlog, type Reservation, type Task } from './backlog.js';
import { Checkpoint } from './checkpoint.js';
import { Delivery } from './delivery.js';
import type { Inputs } from './inputs.js';
import { LeasedBrowser, type Attempt } from './leased-browser.js';
import { LeaseFailures } from './lease-failures.js';
import type { Outcome, TaskCallback } from './outcome.js';
import { Progress } from './progress.js';
import { nameOfLease, type MapSettings } from './settings.js';

export interface JobParts<Handles, Input, Value> {
  pool: BrowserPool;
  connector: Connector<Handles>;
  inputs: Inputs<Input>;
  fn: TaskCallback<Handles, Input, Value>;
  settings: MapSettings;
}

/** One call of `mapPooledBrowsers`, from its first input to the return of its last browser. */
export class Job<Handles, Input, Value> {
  readonly #parts: JobParts<Handles, Input, Value>;
  readonly #backlog: Backlog<Input>;
  readonly #delivery: Delivery<Outcome<Input, Value>>;
  readonly #progress: Progress;
  readonly #failures: LeaseFailures;
  /** Aborts what runs. */
  readonly #abort = new AbortController();
  #checkpoint: Checkpoint | undefined;
  #failure: { error: unknown } | undefined;
  #leases = 0;
  #running: Promise<void> | undefined;

  constructor(parts: JobParts<Handles, Input, Value>) {
    const { inputs, settings } = parts;
    const { concurrency, pagesPerLease, ordered, onProgress, total = inputs.size, lease } = settings;
    // Outcomes that nobody has asked for yet hold up the inputs: as many again as run at once.
    const room = 2 * concurrency * pagesPerLease;
    this.#parts = parts;
    this.#delivery = new Delivery(ordered, () => this.#backlog.match());
    this.#backlog = new Backlog(inputs, {
      isDone: (input) => this.#isDone(input),
      mayPull: (pulled) => pulled - this.#delivery.delivered < room,
    });
    this.#progress = new Progress(onProgress, { total, waiting: () => this.#backlog.waiting });
    this.#failures = new LeaseFailures(lease.acquireTimeout);
  }

  /** The next outcome. The first call begins the job. */
  next(): Promise<IteratorResult<Outcome<Input, Value>, undefined>> {
    this.#running ??= this.#run();
    return this.#delivery.next();
  }

  /** Ends what runs, and resolves when every browser has been given back. */
  async end(): Promise<void> {
    this.#running ??= Promise.resolve();
    this.#delivery.discard();
    void this.#stop(new DOMException('The iteration was ended.', 'AbortError'));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { settings, inputs } = this.#parts;
    const { signal } = settings.lease;
    const onAbort = () => this.#fail(signal!.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) onAbort();
    try {
      if (settings.checkpoint) this.#checkpoint = await Checkpoint.open(settings.checkpoint);
      await Promise.all(Array.from({ length: settings.concurrency }, () => this.#lease()));
    } catch (error) {
      this.#fail(error);
    }
    signal?.removeEventListener('abort', onAbort);
    await inputs.close();
    await this.#checkpoint?.close();
    this.#progress.end();
    this.#delivery.end(this.#failure ?? this.#backlog.failure);
  }

  /** The first error ends the job. */
  #fail(error: unknown): void {
    this.#failure ??= { error };
    void this.#stop(error);
  }

  async #stop(reason: unknown): Promise<void> {
    this.#backlog.close();
    // Browsers without a task are given back as they are, before those at work are cut off.
    await soon();
    this.#abort.abort(reason);
  }

  #isDone(input: Input): boolean {
    if (!this.#checkpoint?.has(input)) return false;
    this.#progress.skipped++;
    this.#progress.changed();
    return true;
  }

  /** Leases browser after browser, as long as there is work for it. */
  async #lease(): Promise<void> {
    const { retry } = this.#parts.settings.lease;
    for (let failures = 0; ;) {
      // For the time of one lease.
      const abort = new LinkedAbort(this.#abort.signal);
      const reservation = await this.#backlog.reserve(() => abort.abort(NOT_NEEDED));
      if (!reservation) return abort.dispose();
      const { begun, error } = await this.#useLease(reservation, abort);
      abort.dispose();
      if (this.#abort.signal.aborted) return;
      failures = begun > 0 ? 0 : failures;
      if (error === undefined || error === NOT_NEEDED) continue;
      failures++;
      if (this.#failures.isFatal(error, failures)) return this.#fail(error);
      const delay = backoffDelay(retry, failures);
      await sleep(delay, undefined, { signal: this.#abort.signal }).catch(() => {});
    }
  }

  /** Never rejects: the error is why the lease came to nothing, or to an early end. */
  async #useLease(reservation: Reservation, abort: LinkedAbort): Promise<{ begun: number; error?: unknown }> {
    const { pool, connector, settings, fn } = this.#parts;
    const { name, onEvent } = settings.lease;
    this.#leases++;
    let lease: Lease<Handles>;
    try {
      lease = await openLease(pool, connector, {
        ...settings.lease,
        name: name && nameOfLease(name, this.#leases),
        signal: abort.signal,
        onEvent: (event) => {
          if (event.type === 'acquired') this.#failures.onLease(0);
          return onEvent?.(event);
        },
      });
    } catch (error) {
      reservation.end();
      // Another worker may do it.
      this.#backlog.match();
      return { begun: 0, error };
    }
    const browser = new LeasedBrowser({
      lease,
      fn,
      settings,
      backlog: this.#backlog,
      abandon: (error) => abort.abort(error),
      onBegin: (task) => this.#onBegin(task),
      onEnd: (task, attempt) => this.#onEnd(task, attempt, lease),
    });
    this.#onLeases(1);
    // In one go with the begin of its lanes, which take what waits: no other browser is leased for that.
    reservation.end();
    await browser.work();
    this.#onLeases(-1);
    return { begun: browser.begun, error: browser.fault };
  }

  #onLeases(change: 1 | -1): void {
    this.#failures.onLease(change);
    this.#progress.leases += change;
    this.#progress.changed();
  }

  #onBegin(task: Task<Input>): void {
    task.attempts++;
    this.#progress.running++;
    this.#progress.changed();
  }

  async #onEnd(task: Task<Input>, attempt: Attempt<Value>, browser: Lease<Handles>): Promise<void> {
    const { retries, lease } = this.#parts.settings;
    const { position, index, input, attempts } = task;
    this.#progress.running--;
    this.#progress.changed();
    // Ended with the job, it has no outcome.
    if (this.#abort.signal.aborted) return;
    if (attempt.status === 'rejected' && attempts <= retries) {
      this.#progress.retried++;
      void this.#backlog.putBack(task, backoffDelay(lease.retry, attempts));
      return;
    }
    const { session, recording: replays } = browser;
    const outcome = { ...attempt, index, input, session, attempts, replays };
    try {
      await this.#checkpoint?.write(outcome);
    } catch (error) {
      return this.#fail(error);
    }
    this.#progress.done++;
    if (attempt.status === 'rejected') this.#progress.failed++;
    this.#delivery.push(position, outcome);
    this.#backlog.settle();
  }
}

const NOT_NEEDED = new Error('There is no more work for this browser.');
