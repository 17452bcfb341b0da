import type { HowToConnect } from './verify-connection.js';
import { coreOf, type PoolCore } from '../pool/pool-core.js';
import { LinkedAbort } from '../shared/abort.js';
import { clock } from '../shared/clock.js';
import { runs } from '../shared/process-state.js';
import { PoolClosedError } from '../shared/service-errors.js';
import { callListener, publish, traceStage } from '../shared/telemetry.js';
import type { CallContext } from './context.js';
import type { AnyEvent, AnyStep, LeaseStep } from './events.js';
import type { FeatureSet, SummaryOf } from './feature.js';
import { Hooks } from './hooks.js';
import type { LeaseEnd, LeasePlan } from './plan.js';
import { rememberRun, type FailedLease, type LeaseSummary } from './summary.js';

/** What one call reports: its events, times, traces, errors and result; and the signal and the clock that end its work. */
export class Call<Session extends object = object, Features extends FeatureSet = FeatureSet> {
  readonly plan: LeasePlan<Session, Features>;
  readonly pool: PoolCore<Session>;
  readonly context: CallContext;
  readonly hooks: Hooks<Features>;
  /** How many acquire requests the call has sent, and for how many of them it is not known whether they leased a browser. */
  readonly counts = { acquireAttempts: 0, unknownAcquires: 0 };
  /** The browser that the call has or had, for the traces: its session's id, and its number within the call, from 1. */
  browser: { attempt: number; sessionId?: string } = { attempt: 0 };
  /** The last browser, if it could not be reached. */
  lastBrowser: Pick<FailedLease<Session>, 'session' | 'released'> = {};
  readonly #run = ++runs.count;
  readonly #abort: LinkedAbort;
  readonly #stages: Record<string, number> = {};
  readonly #errors: Error[] = [];
  readonly #endCall: () => void;
  #endLease = () => {};

  constructor(plan: LeasePlan<Session, Features>) {
    const { settings, features } = plan;
    const pool = coreOf(plan.pool);
    this.plan = plan;
    this.pool = pool;
    this.#abort = new LinkedAbort(settings.signal);
    this.context = {
      pool,
      settings,
      signal: this.#abort.signal,
      abort: (reason) => this.#abort.abort(reason),
      emit: this.#emit,
      addError: (error) => void this.#errors.push(error),
      time: this.#time,
    };
    this.hooks = new Hooks(features, this.context);
    const close = (error: PoolClosedError) => {
      this.#abort.abort(error);
      this.#endLease();
    };
    this.#endCall = pool.beginCall(close);
  }

  /** Ends the lease, after the abort, when the pool is closed, or was: nobody else may be left to end it. */
  endWithPool(lease: { end(outcome: LeaseEnd): unknown }): void {
    const { signal } = this.#abort;
    this.#endLease = () => void lease.end({ status: 'failed', error: signal.reason });
    if (signal.reason instanceof PoolClosedError) this.#endLease();
  }

  /** How the call connects, for the checks of pools and browsers. */
  get how(): HowToConnect {
    const { connector, settings } = this.plan;
    return { protocol: settings.protocol, connector, needsCdp: this.hooks.need('cdp') };
  }

  /** Ends the call: emits its last event, and keeps its summary for `runOf`. */
  finish<End extends Call<Session>['lastBrowser']>(
    end: End,
    failure?: { error?: unknown },
  ): Omit<LeaseSummary<Session>, 'session' | 'released'> & End & SummaryOf<Features> {
    const timings = { ...this.#stages, total: Math.round(this.#abort.elapsed) };
    const facts = { ...this.counts, timings, cleanupErrors: this.#errors };
    const summary = { ...this.hooks.summary(), ...end, ...facts };
    if (failure) rememberRun(failure.error, summary);
    const { emit }: CallContext<LeaseStep<Session>> = this.context;
    emit({ type: 'ended', status: failure ? 'failed' : 'ok', summary, ...failure });
    this.#abort.dispose();
    this.#endCall();
    return summary;
  }

  readonly #emit = (step: AnyStep): void => {
    const elapsed = Math.round(this.#abort.elapsed);
    const event: AnyEvent = { ...step, pool: this.pool.idOrName, run: this.#run, elapsed };
    publish(event);
    const { settings } = this.context;
    if (settings.onEvent) callListener((one: AnyEvent) => settings.onEvent?.(one), event);
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
