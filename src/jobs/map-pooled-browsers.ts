import type { Connector } from '../drivers/connector.js';
import { readConnector } from '../calls/options.js';
import type { LibraryTypes } from '../lease/options.js';
import { resolvePools, type Pools } from '../pool/browser-pool.js';
import type { BrowserSession } from '../services/kernel-api.js';
import { callSite } from '../shared/errors.js';
import { callback, readOption } from '../shared/options.js';
import { lazy } from '../shared/lazy.js';
import { iterableSource, type IterableSource } from './input-source.js';
import type { JobPlan } from './job-context.js';
import { readMapOptions, type MapOptions } from './options.js';
import { expectData } from './task-value.js';
import type { Outcome, OutcomeRecord, TaskFacts } from './outcome.js';
import type { MapSummary } from './progress.js';

/**
 * The outcomes of a job, for `for await`. Leaving the loop ends the job and releases every browser. To `await` the object runs
 * the job to its end, with or without a loop before, and resolves to its summary; it rejects as the loop would.
 */
export type Outcomes<Input, Value, Session extends object = BrowserSession> = AsyncIterableIterator<
  Outcome<Input, Value, Session>,
  undefined,
  void
> &
  AsyncDisposable &
  PromiseLike<MapSummary>;

/**
 * Calls `fn` for every input, on browsers leased from a pool, and yields the outcome of each input. Nothing is leased
 * or pulled before the loop begins. Inputs are pulled when they are needed, and not while the loop is busy.
 *
 * `await mapPooledBrowsers(…)` needs no loop: it runs the job to its end, drops the values, and resolves to a summary.
 * Do not return the object from an async function, which would await it.
 *
 * A failed task is an outcome, not an error of the loop. Leaving the loop, or aborting `signal`, ends the running
 * tasks, releases the browsers and closes the inputs; the inputs of these tasks have no outcome. A browser that is
 * granted after that is released in the background, and `pool.close()` waits for its release.
 *
 * @param pool A `BrowserPool`, or the id or name of a pool of the service that the environment variables name.
 * @param inputs An array, or another iterable or async iterable. If it throws, the loop ends with that error after the
 *   running tasks have their outcomes. With `checkpoint`, data that JSON can hold.
 * @param fn The task, called once per attempt.
 * @throws `InvalidOptionError` before the loop. In the loop: `PoolServiceError` when the service refuses;
 *   `AcquireTimeoutError` or `ConnectError` when no browser is available or usable; `CheckpointError`;
 *   `TooManyFailuresError`; the reason of `signal`.
 */
export function mapPooledBrowsers<Handles, Input, Value, Session extends object = BrowserSession>(
  pool: Pools<Session>,
  inputs: Iterable<Input> | AsyncIterable<Input>,
  fn: (task: Handles & TaskFacts<Input, Session>) => Value | PromiseLike<Value>,
  options: MapOptions<LibraryTypes, Input, Session> & { connector: Connector<Handles> },
): Outcomes<Input, Value, Session> {
  const { connector, rest } = readConnector<Handles, typeof options>(options, 'mapPooledBrowsers');
  readOption(callback(), 'fn', fn);
  const settings = readMapOptions(rest, connector);
  const source = iterableSource(inputs);
  // The inputs of a generator are checked when they are pulled.
  if (settings.checkpoint && source.size !== undefined) [...(inputs as Iterable<Input>)].forEach(expectData);
  return startLater({ pools: resolvePools(pool), connector, fn, settings }, source);
}

/**
 * Reads the outcomes in a checkpoint of `mapPooledBrowsers`, in their order. The file of a job
 * that still runs, or that was killed, may have several outcomes of an input that was run again; the last one counts.
 * An incomplete line at the end, left by a killed job, is ignored.
 *
 * @param path Path of the file.
 * @throws `CheckpointError` when the file does not exist or is not a checkpoint.
 */
export async function* readCheckpoint(path: string): AsyncGenerator<OutcomeRecord, void, undefined> {
  // An import of this library loads no functions for files.
  const { readRecords } = await import('./checkpoint.js');
  yield* readRecords(path);
}

/** @internal Loaded with the first use of a job: an import of this library loads only its options. */
export const loadJob = lazy(() => import('./run-job.js'));

/** Starts the job with its first outcome. */
function startLater<Handles, Input, Value, Session extends object>(
  plan: Omit<JobPlan<Handles, Input, Value, Session>, 'source'>,
  inputs: IterableSource<Input>,
): Outcomes<Input, Value, Session> {
  const fromHere = callSite();
  const start = lazy(async () => {
    const { checkpoint } = plan.settings;
    const source = checkpoint ? (await import('./checkpoint.js')).withCheckpoint(inputs, checkpoint) : inputs;
    return new (await loadJob()).Job({ ...plan, source });
  });
  const outcomes: Outcomes<Input, Value, Session> = {
    next: () => fromHere(start().then((job) => job.next())),
    // oxlint-disable-next-line unicorn/no-thenable -- the job is awaited on purpose
    then: (onDone, onError) => fromHere(start().then((job) => job.summary())).then(onDone, onError),
    return: async () => {
      await (await start()).end();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => outcomes,
    [Symbol.asyncDispose]: async () => (await start()).end(),
  };
  return outcomes;
}
