import type { Queue } from 'bullmq';
import { QueueError } from '../../shared/lease-errors.js';
import { loadBullMQ } from './bullmq.js';
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
  const { Queue } = await loadBullMQ();
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

/**
 * Notes that all inputs of a list were added.
 *
 * @throws `QueueError` if Redis has lost the list meanwhile, with inputs.
 */
export async function endList({ queue, redis }: InputQueue, list: string, count: number): Promise<void> {
  const isNew = (await redis.guard(redis.client.hset(listsOf(queue), list, count))) === 1;
  if (isNew) throw dataLoss(queue);
}

/**
 * Reads whether lists were added, and whether all of them completely. Marks them: without the mark, the lists are others.
 *
 * @param areKnown Whether this collector has read lists before.
 * @param list The only list to read. Default: all.
 * @throws `QueueError` if Redis has lost these lists.
 */
export async function readLists(
  { queue, redis }: InputQueue,
  areKnown: boolean,
  list?: string,
): Promise<{ exist: boolean; areComplete: boolean }> {
  const key = listsOf(queue);
  const { [MARK]: mark, ...lists } = await redis.guard(redis.client.hgetall(key));
  const read = Object.entries(lists).filter(([name]) => list === undefined || name === list);
  const counts = read.map(([, count]) => count);
  const exist = counts.length > 0;
  if (areKnown && (mark === undefined || !exist)) throw dataLoss(queue);
  if (exist && mark === undefined) await redis.guard(redis.client.hset(key, MARK, '1'));
  return { exist, areComplete: exist && !counts.includes(OPEN) };
}

function dataLoss({ name }: Queue): QueueError {
  return new QueueError(
    `Redis has lost the queue ${name}: it was emptied, or restarted without its data. Results that were not collected ` +
      'are lost. Store the data (appendonly yes), add the inputs without a result again, and start again.',
  );
}

/**
 * Forgets the lists, because each of their inputs has its outcome. Resolves to false if another list is being added.
 *
 * @param list The only list to forget. Default: all.
 */
export async function forgetLists({ queue, redis }: InputQueue, list?: string): Promise<boolean> {
  const key = listsOf(queue);
  if (list !== undefined) return (await redis.guard(redis.client.hdel(key, list))) === 1;
  return (await redis.guard(redis.client.eval(FORGET, 1, key, OPEN))) === 1;
}

const FORGET = `
  for _, count in ipairs(redis.call('HVALS', KEYS[1])) do if count == ARGV[1] then return 0 end end
  return redis.call('DEL', KEYS[1])`;

const OPEN = 'open';
/** Field beside those of the lists. No list has this name. */
const MARK = ':collected';

/** A key of ours beside those of BullMQ. No id of a job has this form. */
function listsOf(queue: Queue): string {
  return queue.toKey('pooled-browser:lists');
}
