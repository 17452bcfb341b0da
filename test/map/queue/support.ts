import {
  collectOutcomes,
  workPooledBrowsers,
  type QueuedOutcome,
  type WorkOptions,
} from '../../../src/bullmq.js';
import type { TaskCallback } from '../../../src/index.js';
import type { Handles, MapBench } from '../support.js';

/** A worker in this process. */
export class TestWorker implements AsyncDisposable {
  readonly #abort = new AbortController();
  readonly ended: ReturnType<typeof workPooledBrowsers>;

  constructor(
    bench: MapBench,
    queueName: string,
    fn: TaskCallback<Handles, unknown, unknown>,
    options: WorkOptions,
  ) {
    this.ended = workPooledBrowsers(queueName, bench.pool, fn, {
      retry: { minTimeout: 5, maxTimeout: 20 },
      replays: 'off',
      connectAttempts: 1,
      pollTimeout: 1000,
      ...options,
      connector: bench.connector,
      signal: this.#abort.signal,
    });
    this.ended.catch(() => {});
  }

  end(): ReturnType<typeof workPooledBrowsers> {
    this.#abort.abort();
    return this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end().catch(() => {});
  }
}

/** Collects until all inputs have their outcome; in the order of the inputs. */
export async function collectAll(queueName: string, connection: string): Promise<QueuedOutcome[]> {
  const outcomes: QueuedOutcome[] = [];
  for await (const outcome of collectOutcomes(queueName, { connection })) outcomes.push(outcome);
  return outcomes.toSorted((one, other) => one.index - other.index);
}
