import type { Queue } from 'bullmq';
import { loadLibrary } from '../../shared/lazy.js';
import type { RedisLink } from './redis.js';

/** Number of events that BullMQ keeps. Each contains a result, and nothing here reads events. */
const EVENTS = 100;

/** A queue with the lists of inputs that were added to it. */
export interface InputQueue {
  readonly queue: Queue;
  readonly redis: RedisLink;
}

export async function openQueue(
  queueName: string,
  redis: RedisLink,
  { prefix }: { readonly prefix: string },
): Promise<InputQueue> {
  const { Queue } = await loadLibrary('bullmq', () => import('bullmq'));
  const streams = { events: { maxLen: EVENTS } };
  const queue = new Queue(queueName, { connection: redis.client, prefix, streams });
  // The link to Redis reports errors of the connection.
  queue.on('error', () => {});
  await redis.guard(queue.waitUntilReady());
  return { queue, redis };
}

/** Notes in Redis that inputs of a list are being added. */
export async function beginList({ queue, redis }: InputQueue, list: string): Promise<void> {
  await redis.guard(redis.client.hset(listsOf(queue), list, OPEN));
}

/** Notes that all inputs of a list were added. */
export async function endList({ queue, redis }: InputQueue, list: string, count: number): Promise<void> {
  await redis.guard(redis.client.hset(listsOf(queue), list, count));
}

/** Whether lists were added, all of them completely. */
export async function areListsComplete({ queue, redis }: InputQueue): Promise<boolean> {
  const counts = await redis.guard(redis.client.hvals(listsOf(queue)));
  return counts.length > 0 && !counts.includes(OPEN);
}

/** Forgets the lists, because each of their inputs has its outcome. */
export async function forgetLists({ queue, redis }: InputQueue): Promise<void> {
  await redis.guard(redis.client.del(listsOf(queue)));
}

const OPEN = 'open';

/** A key of ours beside those of BullMQ. No id of a job has this form. */
function listsOf(queue: Queue): string {
  return queue.toKey('pooled-browser:lists');
}
