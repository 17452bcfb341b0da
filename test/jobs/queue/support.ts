import {
  collectOutcomes,
  enqueueInputs,
  workPooledBrowsers,
  type CollectOptions,
  type EnqueueOptions,
  type QueuedOutcome,
  type WorkOptions,
} from '../../../src/bullmq.js';
import type { TaskCallback } from '../../../src/index.js';
import type { Handles, MapBench } from '../support.js';

/** A worker in this process. */
class TestWorker implements AsyncDisposable {
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

/** A queue in Redis, as the programs of one machine use it. */
export class TestQueue {
  readonly name: string;
  readonly #redis: { readonly connection: string; readonly redisTimeout?: number };

  constructor(name: string, connection: string, options: { redisTimeout?: number } = {}) {
    this.name = name;
    this.#redis = { connection, ...options };
  }

  add(inputs: Iterable<unknown>, options: EnqueueOptions = {}): Promise<number> {
    return enqueueInputs(this.name, inputs, { ...this.#redis, ...options });
  }

  work(bench: MapBench, fn: TaskCallback<Handles, unknown, unknown>, options: WorkOptions = {}): TestWorker {
    return new TestWorker(bench, this.name, fn, { ...this.#redis, ...options });
  }

  outcomes(options: CollectOptions = {}): AsyncIterableIterator<QueuedOutcome> {
    return collectOutcomes(this.name, { ...this.#redis, ...options });
  }

  /** Collects until all inputs have their outcome; in the order of the inputs. */
  async collect(): Promise<QueuedOutcome[]> {
    const outcomes: QueuedOutcome[] = [];
    for await (const outcome of this.outcomes()) outcomes.push(outcome);
    return outcomes.toSorted((one, other) => one.index - other.index);
  }
}
