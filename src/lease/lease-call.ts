import { BrowserPool, namedPool } from '../service/browser-pool.js';
import { INTERNALS } from '../service/pool-internals.js';
import { LinkedAbort } from '../shared/abort.js';
import { InvalidOptionError } from '../shared/errors.js';
import { runs } from '../shared/process-state.js';
import { callListener, publish, traceStage, type Stage, type StageTrace } from '../shared/telemetry.js';
import type { RunEvent, RunStep } from './events.js';
import type { LeaseSettings } from './options.js';
import { rememberRun, type FailedRun, type Timings } from './run.js';

/** A lease of a call, for traces. */
interface TracedLease {
  readonly attempt: number;
  readonly sessionId?: string;
  readonly index?: number;
}

/** The state that all steps of one call share: pool, settings, signal, counters, events and times. */
export class LeaseCall {
  readonly pool: BrowserPool;
  readonly settings: LeaseSettings;
  /** Aborts by the caller's signal, a timeout, or the loss of the browser. */
  readonly abort: LinkedAbort;
  /** Errors of recording, artifacts, cleanup and release. */
  readonly cleanupErrors: Error[] = [];
  /** Paths of the collected artifacts. */
  readonly artifacts: string[] = [];
  /** Number of acquire requests. */
  acquireAttempts = 0;
  /** Number of acquire requests whose outcome is unknown. */
  unknownAcquires = 0;

  readonly #run = ++runs.count;
  readonly #stages: { [stage in Stage]?: number } = {};

  constructor(pool: BrowserPool, settings: LeaseSettings) {
    expectDefaultRelease(pool, settings);
    this.pool = pool;
    this.settings = settings;
    this.abort = new LinkedAbort(settings.signal);
  }

  get signal(): AbortSignal {
    return this.abort.signal;
  }

  readonly emit = (step: RunStep): void => {
    if (step.type === 'acquiring') this.acquireAttempts++;
    if (step.type === 'outcome-unknown') this.unknownAcquires++;
    const elapsed = Math.round(this.abort.elapsed);
    const event: RunEvent = { ...step, pool: this.pool.idOrName, run: this.#run, elapsed };
    publish(event);
    callListener(this.settings.onEvent, event);
  };

  /** Adds the time of the work to a stage, also if it fails, and traces it. */
  async time<T>(
    stage: Stage,
    lease: TracedLease,
    work: () => Promise<T>,
    complete?: (value: T) => Partial<StageTrace>,
  ): Promise<T> {
    const began = performance.now();
    try {
      const trace = { pool: this.pool.idOrName, run: this.#run, ...lease };
      return await traceStage(stage, trace, work, complete);
    } finally {
      this.#stages[stage] = Math.round((this.#stages[stage] ?? 0) + performance.now() - began);
    }
  }

  get counts(): Omit<FailedRun, 'session' | 'replays' | 'replayStatus' | 'released'> {
    const { acquireAttempts, unknownAcquires, cleanupErrors, artifacts } = this;
    const timings: Timings = { ...this.#stages, total: Math.round(this.abort.elapsed) };
    return { acquireAttempts, unknownAcquires, timings, cleanupErrors, artifacts };
  }

  /** Ends the call: emits its last event, and keeps the run for `runOf`. */
  end(summary: FailedRun, failure?: { error: unknown }): void {
    if (failure) rememberRun(failure.error, summary);
    this.emit({ type: 'ended', status: failure ? 'failed' : 'ok', summary, ...failure });
    this.abort.dispose();
  }
}

/** A function of this process can't release a browser after a crash. */
export function expectDefaultRelease(pool: BrowserPool, { releaseOnCrash }: LeaseSettings): void {
  if (!releaseOnCrash || !pool[INTERNALS].hasOwnRelease) return;
  const message =
    'releaseOnCrash needs the default release request: a function in endpoints.release cannot run after a crash.';
  throw new InvalidOptionError('releaseOnCrash', message);
}

/** Returns the pool itself, or the pool with that id or name at the service of the environment. */
export function resolvePool(pool: BrowserPool | string): BrowserPool {
  if (pool instanceof BrowserPool) return pool;
  if (typeof pool === 'string') return namedPool(pool);
  throw new InvalidOptionError('pool', 'pool must be a BrowserPool, or the id or name of a pool.');
}
