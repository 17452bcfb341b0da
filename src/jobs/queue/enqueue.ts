import { raceAbort } from '../../shared/abort.js';
import { delay } from '../../shared/clock.js';
import { readOptions } from '../../shared/options.js';
import { iterableSource, type IterableSource } from '../input-source.js';
import { expectData } from '../task-value.js';
import { beginList, endList, openQueue, type InputQueue } from './input-lists.js';
import { enqueueChecks, readQueueName, type EnqueueOptions, type EnqueueSettings } from './options.js';
import { idOf, type QueuedInput } from './queued-job.js';
import { RedisLink } from './redis.js';

/** Number of inputs per request. */
const BATCH = 500;
/** Pause in ms while the queue has `maxJobs` jobs. */
const FULL_PAUSE = 250;

/**
 * Adds inputs to a queue, in batches, for `workPooledBrowsers`. They are read as they are added, so that they may be more
 * than fit into memory. An input that is still in the queue, or whose outcome is, is not added again: a program that was
 * killed can add the same list once more.
 *
 * @param queueName Name of the queue, without a colon.
 * @param inputs An array, or another iterable or async iterable, of data that JSON can hold.
 * @returns The number of inputs in the list, when all are in the queue.
 * @throws `InvalidOptionError`; `QueueError` when Redis is unreachable; `MissingLibraryError` without bullmq and ioredis; an
 *   error of the iterable.
 */
export async function enqueueInputs(
  queueName: string,
  inputs: Iterable<unknown> | AsyncIterable<unknown>,
  options: EnqueueOptions = {},
): Promise<number> {
  const name = readQueueName(queueName);
  const settings = readOptions(enqueueChecks, options, 'enqueueInputs');
  const source = iterableSource(inputs);
  await using redis = await RedisLink.open(settings);
  return await addList(await openQueue(name, redis, settings), source, settings);
}

/** Adds the inputs of a source, and closes it. */
export async function addList(
  queue: InputQueue,
  source: IterableSource<unknown>,
  settings: EnqueueSettings,
): Promise<number> {
  const { list, taskTimeout, signal } = settings;
  let count = 0;
  let batch: QueuedInput[] = [];
  await beginList(queue, list);
  try {
    const pull = () => raceAbort(source.pull(), signal);
    for (let next = await pull(); next; next = await pull()) {
      expectData(next.input, next.index);
      batch.push({ index: next.index, input: next.input, list, taskTimeout });
      count++;
      if (batch.length < BATCH) continue;
      await addBatch(queue, batch, settings);
      batch = [];
    }
    if (batch.length > 0) await addBatch(queue, batch, settings);
  } finally {
    await source.close();
  }
  await endList(queue, list, count);
  return count;
}

async function addBatch(
  { queue, redis }: InputQueue,
  batch: readonly QueuedInput[],
  { retries, backoff, maxJobs, signal }: EnqueueSettings,
): Promise<void> {
  if (maxJobs < Number.POSITIVE_INFINITY) {
    while ((await redis.guard(queue.getJobCountByTypes())) >= maxJobs) await delay(FULL_PAUSE, signal);
  }
  const type = backoff.exponential ? 'exponential' : 'fixed';
  const retrying = retries > 0 && {
    attempts: retries + 1,
    // Without jitter, inputs that failed together would be retried together.
    backoff: { type, delay: backoff.delay, jitter: 0.5 },
  };
  await redis.guard(
    queue.addBulk(batch.map((data) => ({ name: 'input', data, opts: { ...retrying, jobId: idOf(data) } }))),
  );
}
