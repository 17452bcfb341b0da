import { redact } from './redact.js';

/** Node's channels, which an import of the library does not load. */
function diagnostics() {
  return process.getBuiltinModule('node:diagnostics_channel');
}

/** An event of the heart or of a feature. */
export interface AnyStep {
  readonly type: string;
}

/** The union of events whose facts an interface has by `type`. */
export type StepOf<Steps> = { [Type in keyof Steps]: { type: Type } & Steps[Type] }[keyof Steps];

/** Publishes an event on the diagnostics channel `pooled-browser:event`. */
export function publish(event: object): void {
  const channel = diagnostics().channel('pooled-browser:event');
  if (channel.hasSubscribers) channel.publish(event);
}

/**
 * Calls a listener of the caller. If the listener throws or rejects, the process emits a warning and the call
 * continues.
 */
export function callListener<Event>(
  listener: ((event: Event) => void) | undefined,
  event: Event,
  option = 'onEvent',
): void {
  if (!listener) return;
  const warn = (error: unknown) => emitWarning(`${option} threw`, error);
  try {
    // An unhandled rejection of an async listener would end the process.
    Promise.resolve(listener(event)).catch(warn);
  } catch (error) {
    warn(error);
  }
}

/** Loads node:util only when there is a warning: it takes a tenth of the import time of the whole library. */
function emitWarning(what: string, error: unknown): void {
  const { inspect } = process.getBuiltinModule('node:util');
  process.emitWarning(`${what}: ${redact(inspect(error))}`, 'PooledBrowserWarning');
}

/**
 * The message on the tracing channels `tracing:pooled-browser:<stage>:<event>`, with Node's events `start`, `end`,
 * `asyncStart`, `asyncEnd` and `error`. All events of a stage share one object. It contains no secrets, and no result.
 */
export interface StageTrace {
  /** Id or name of the pool. */
  pool: string;
  /** Number of the call in this process, as in its events. */
  run: number;
  /** Number of the lease within the call, from 1. */
  attempt: number;
  /** The leased session, from the end of `acquire` on. */
  sessionId?: string;
  /** Index of the input, from 0, for `callback` in `mapPooledBrowsers`. */
  index?: number;
  /** Why the stage failed, in `error` and `asyncEnd`; for `callback` the value that the caller's code threw. */
  error?: unknown;
}

const channelOf = (stage: string) =>
  diagnostics().tracingChannel<unknown, StageTrace>(`pooled-browser:${stage}`);

/**
 * Does the work of a stage and publishes its progress. Without a subscriber, the cost is one check.
 *
 * @param after What the trace says besides when the work has succeeded.
 */
export function traceStage<T>(
  stage: string,
  trace: StageTrace,
  work: () => Promise<T>,
  after?: (value: T) => Partial<StageTrace>,
): Promise<T> {
  const channel = channelOf(stage);
  if (!channel.hasSubscribers) return work();
  const tracedWork = async () => {
    const value = await work();
    Object.assign(trace, after?.(value));
    return value;
  };
  return traceIn(channel, trace, tracedWork);
}

async function traceIn<T>(
  channel: ReturnType<typeof channelOf>,
  trace: StageTrace,
  work: () => Promise<T>,
): Promise<T> {
  // Not returned from the traced function: Node would publish the value, which may be internal or the caller's.
  let value!: T;
  await channel.tracePromise(async () => {
    value = await work();
  }, trace);
  return value;
}
