import type { PoolCore } from '../pool/pool-core.js';
import { LinkedAbort } from '../shared/abort.js';
import { clock } from '../shared/clock.js';
import { runs } from '../shared/process-state.js';
import { PoolClosedError } from '../shared/service-errors.js';
import { callListener, publish, traceStage } from '../shared/telemetry.js';
import { CallbackClock } from './callback-clock.js';
import type { CallContext } from './context.js';
import type { AnyEvent, AnyStep } from './events.js';
import type { CallSettings } from './options.js';
import type { FailedLease } from './summary.js';

/** What one call reports: its events, times, traces and errors; and the signal and the clock that end its work. */
export class Call {
  readonly context: CallContext;
  /** The pool of the present request or browser, for the events. */
  pool: PoolCore;
  /** Of the browser that the call has or had, for the traces: the id, and its number within the call, from 1. */
  browser: { attempt: number; sessionId?: string } = { attempt: 0 };
  readonly #run = ++runs.count;
  readonly #abort: LinkedAbort;
  readonly #stages: Record<string, number> = {};
  readonly #errors: Error[] = [];
  readonly #leavePools: readonly (() => void)[];
  #end: ((reason: unknown) => void) | undefined;

  constructor(pools: readonly [PoolCore, ...PoolCore[]], settings: CallSettings) {
    const [pool] = pools;
    this.pool = pool;
    this.#abort = new LinkedAbort(settings.signal);
    const timeouts = new CallbackClock();
    this.context = {
      pool,
      settings,
      signal: this.#abort.signal,
      abort: (reason) => this.#abort.abort(reason),
      emit: this.#emit,
      addError: (error) => void this.#errors.push(error),
      time: this.#time,
      startTimeout: timeouts.start,
      pauseTimeouts: timeouts.pause,
    };
    const close = (error: PoolClosedError) => {
      this.#abort.abort(error);
      this.#end?.(this.#abort.signal.reason);
    };
    this.#leavePools = pools.map((one) => one.beginCall(close));
  }

  /** The facts of the call that do not depend on its browser. */
  get facts(): Pick<FailedLease, 'timings' | 'cleanupErrors'> {
    const total = Math.round(this.#abort.elapsed);
    return { timings: { ...this.#stages, total }, cleanupErrors: this.#errors };
  }

  /** Calls `end` after the abort when one of the pools is closed, or was: nobody else may be left to end the lease. */
  onPoolClosed(end: (reason: unknown) => void): void {
    this.#end = end;
    if (this.#abort.signal.reason instanceof PoolClosedError) end(this.#abort.signal.reason);
  }

  dispose(): void {
    this.#abort.dispose();
    for (const leave of this.#leavePools) leave();
  }

  readonly #emit = (step: AnyStep): void => {
    const elapsed = Math.round(this.#abort.elapsed);
    const event: AnyEvent = { ...step, pool: this.pool.idOrName, run: this.#run, elapsed };
    publish(event);
    const { settings } = this.context;
    callListener((one: AnyEvent) => settings.onEvent?.(one), event);
  };

  readonly #time: CallContext['time'] = async (stage, work, task) => {
    const began = clock.now();
    const trace = { pool: this.pool.idOrName, run: this.#run, ...this.browser, ...task };
    try {
      return await traceStage(stage, trace, async () => {
        const value = await work();
        // `acquire` has leased the browser.
        Object.assign(trace, this.browser);
        return value;
      });
    } finally {
      this.#stages[stage] = Math.round((this.#stages[stage] ?? 0) + clock.now() - began);
    }
  };
}
