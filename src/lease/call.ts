import type { ConnectionRequirements } from './verify-connection.js';
import { coreOf } from '../pool/pool-core.js';
import { LinkedAbort } from '../shared/abort.js';
import { clock } from '../shared/clock.js';
import { environment } from '../shared/environment.js';
import { isError } from '../shared/globals.js';
import { runs } from '../shared/process-state.js';
import { excerpt } from '../shared/redact.js';
import { PoolClosedError } from '../shared/service-errors.js';
import { callListener, publish, traceStage } from '../shared/telemetry.js';
import type { AcquireCounts, PoolCores } from './acquire.js';
import type { CallContext } from './context.js';
import type { AnyEvent, AnyStep, LeaseStep } from './events.js';
import type { FeatureSet, SummaryOf } from './feature.js';
import { Hooks } from './hooks.js';
import type { LeaseEnd, LeasePlan } from './plan.js';
import { rememberRun, type FailedLease, type LeaseSummary } from './summary.js';

/** The part of a call that the heart shares. Its signal is created when it is first used: thousands of calls may wait. */
class Context implements CallContext {
  readonly settings: CallContext['settings'];
  readonly abort: CallContext['abort'];
  readonly emit: CallContext['emit'];
  readonly addError: CallContext['addError'];
  readonly time: CallContext['time'];
  readonly #linked: LinkedAbort;

  constructor(linked: LinkedAbort, { settings, abort, emit, addError, time }: Omit<CallContext, 'signal'>) {
    this.settings = settings;
    this.abort = abort;
    this.emit = emit;
    this.addError = addError;
    this.time = time;
    this.#linked = linked;
  }

  get signal(): AbortSignal {
    return this.#linked.signal;
  }
}

/** What one call reports: its events, times, traces, errors and result; and the signal and the clock that end its work. */
export class Call<Session extends object = object, Features extends FeatureSet = FeatureSet> {
  readonly plan: LeasePlan<Session, Features>;
  readonly pools: PoolCores<Session>;
  readonly context: CallContext;
  readonly hooks: Hooks<Features>;
  /** Its number among the calls of this process, from 1: their order. */
  readonly number = ++runs.count;
  /** Aborts when the work of the call must end. */
  readonly abort: LinkedAbort;
  readonly #stages: Record<string, number> = {};
  readonly #errors: Error[] = [];
  readonly #endCalls: readonly (() => void)[];
  #endLease: (() => void) | undefined;

  constructor(plan: LeasePlan<Session, Features>) {
    const { settings, features } = plan;
    const [first, ...further] = plan.pools;
    this.plan = plan;
    this.pools = [coreOf(first), ...further.map((pool) => coreOf(pool))];
    const linked = new LinkedAbort(settings.signal);
    this.abort = linked;
    this.context = new Context(linked, {
      settings,
      abort: (reason) => linked.abort(reason),
      emit: this.#emit,
      addError: (error) => void this.#errors.push(error),
      time: this.#time,
    });
    this.hooks = new Hooks(features, this.context);
    const close = (error: PoolClosedError) => {
      this.abort.abort(error);
      this.#endLease?.();
    };
    this.#endCalls = this.pools.map((pool) => pool.beginCall(close));
  }

  /** Ends the lease, after the abort, when the pool is closed, or was: nobody else may be left to end it. */
  endWithPool(lease: { end(outcome: LeaseEnd): unknown }): void {
    const { abort } = this;
    this.#endLease = () => void lease.end({ status: 'failed', error: abort.signal.reason });
    if (abort.signal.reason instanceof PoolClosedError) this.#endLease();
  }

  /** How the call connects, for the checks of pools and browsers. */
  get how(): ConnectionRequirements {
    const { connector, settings } = this.plan;
    return { protocol: settings.protocol, connector, needsCdp: this.hooks.need('cdp') };
  }

  /** Ends the call: emits its last event, and keeps its summary for `runOf`. */
  finish<End extends CallEnd<Session>>(
    end: End,
    failure?: { error?: unknown },
  ): Omit<LeaseSummary<Session>, keyof CallEnd> & End & SummaryOf<Features> {
    const timings = { ...this.#stages, total: Math.round(this.abort.elapsed) };
    const facts = { timings, cleanupErrors: this.#errors };
    const summary = { ...this.hooks.summary(), ...end, ...facts };
    if (failure) rememberRun(failure.error, summary);
    const { emit }: CallContext<LeaseStep<Session> & { pool: string }> = this.context;
    emit({ type: 'ended', pool: end.pool, status: failure ? 'failed' : 'succeeded', summary, ...failure });
    this.abort.dispose();
    for (const endCall of this.#endCalls) endCall();
    return summary;
  }

  readonly #emit = (step: AnyStep): void => {
    const elapsed = Math.round(this.abort.elapsed);
    const { settings } = this.context;
    const { name } = settings;
    const facts = { run: this.number, elapsed, ...(name !== undefined && { name }) };
    const event: AnyEvent = { pool: this.pools[0].idOrName, ...step, ...facts };
    publish(event);
    debugPrint ??= environment.debugs() ? openDebugLog() : false;
    if (debugPrint) debugPrint(event);
    if (settings.onEvent) callListener((one: AnyEvent) => settings.onEvent?.(one), event);
  };

  readonly #time: CallContext['time'] = async (stage, work, facts, after) => {
    const began = clock.now();
    const trace = { pool: this.pools[0].idOrName, run: this.number, attempt: 0, ...facts };
    try {
      return await traceStage(stage, trace, work, after);
    } finally {
      this.#stages[stage] = Math.round((this.#stages[stage] ?? 0) + clock.now() - began);
    }
  };
}

/** Prints an event with `NODE_DEBUG=pooled-browser`. Decided at the first event; `false`: nothing is loaded or formatted. */
let debugPrint: ((event: AnyEvent) => void) | false | undefined;

/** Longest line of an event, in characters. */
const LONGEST_LINE = 2000;

/** Objects of many lines, whose facts other events have. */
const LEFT_OUT = new Set(['type', 'session', 'summary']);

function openDebugLog(): typeof debugPrint {
  const { debuglog, inspect } = process.getBuiltinModule('node:util');
  const log = debuglog('pooled-browser');
  // The variable may name only other parts of the program.
  if (!log.enabled) return false;
  const textOf = (value: unknown) => (isError(value) ? String(value) : inspect(value, { depth: 1 }));
  return (event) => {
    const facts = Object.entries(event).flatMap(([name, value]) =>
      LEFT_OUT.has(name) || value === undefined ? [] : `${name}=${textOf(value)}`,
    );
    log('%s', excerpt([event.type, ...facts].join(' '), LONGEST_LINE));
  };
}

/** What the heart reports about the pool, the acquire requests and the last browser of a call. */
type CallEnd<Session extends object = object> = AcquireCounts &
  Pick<FailedLease<Session>, 'session' | 'released' | 'pool'>;
