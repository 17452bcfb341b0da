import { channel, tracingChannel } from 'node:diagnostics_channel';
import { redact } from './redact.js';

const events = channel('pooled-browser:event');

/** Puts an event on the diagnostics channel `pooled-browser:event`. */
export function publish(event: object): void {
  if (events.hasSubscribers) events.publish(event);
}

/** Calls a listener of the caller's. One that throws must break nothing: it gets a warning. */
export function callListener<Event>(
  listener: ((event: Event) => void) | undefined,
  event: Event,
  option = 'onEvent',
): void {
  if (!listener) return;
  const warn = (error: unknown) => void warnOf(`${option} threw`, error);
  try {
    // An async listener rejects where a plain one throws: unhandled, that would end the process.
    Promise.resolve(listener(event)).catch(warn);
  } catch (error) {
    warn(error);
  }
}

/** Imports node:util only where there is something to show: it takes a tenth of what all of the root takes, or more. */
async function warnOf(what: string, error: unknown): Promise<void> {
  const { inspect } = await import('node:util');
  process.emitWarning(`${what}: ${redact(inspect(error))}`, 'PooledBrowserWarning');
}

/** The stages of a lease, in their usual order. */
export type Stage = 'acquire' | 'connect' | 'callback' | 'sweep' | 'replays' | 'release';

/**
 * What the tracing channels of the stages publish: `tracing:pooled-browser:<stage>:<event>`, with node's five events
 * `start`, `end`, `asyncStart`, `asyncEnd` and `error`. One object a stage, the same for each of its events, and
 * without secrets; what a stage resolves to is not published.
 */
export interface StageTrace {
  /** Id or name of the pool. */
  pool: string;
  /** The run's number in this process, as in its events. */
  run: number;
  /** Which lease of the call it is, from 1. */
  attempt: number;
  /** The leased session: from the end of `acquire` on. */
  sessionId?: string;
  /** Place of the input among all inputs, from 0: with `callback`, where that is a task of `mapPooledBrowsers`. */
  index?: number;
  /** Why the stage failed: with `error` and `asyncEnd`. From `callback` it is whatever the caller's code threw. */
  error?: unknown;
}

const channels = {
  acquire: channelOf('acquire'),
  connect: channelOf('connect'),
  callback: channelOf('callback'),
  sweep: channelOf('sweep'),
  replays: channelOf('replays'),
  release: channelOf('release'),
};

/**
 * Does the work of a stage, and publishes its course. With nobody listening it costs one check.
 *
 * @param learn Adds to the trace what is known only after the work.
 */
export async function traceStage<T>(
  stage: Stage,
  trace: StageTrace,
  work: () => Promise<T>,
  learn: (trace: StageTrace) => void,
): Promise<T> {
  const channel = channels[stage];
  if (!channel.hasSubscribers) return work();
  // Not returned from within: node would publish it, and with it our insides, or the caller's value.
  let value!: T;
  await channel.tracePromise(async () => {
    value = await work();
    learn(trace);
  }, trace);
  return value;
}

function channelOf(stage: Stage) {
  return tracingChannel<unknown, StageTrace>(`pooled-browser:${stage}`);
}
