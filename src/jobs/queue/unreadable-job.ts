import type { Job, Queue, Worker } from 'bullmq';
import { isRecord, jsonOf } from '../../shared/json.js';
import type { RedisLink } from './redis.js';

const isCount = (text: string): boolean => /^\d{1,15}$/.test(text);

/**
 * The fields of a job that BullMQ, or its scripts in Redis, read without a test, and what they can read. One job with another value
 * would end each worker that takes it, and each collector, at every start.
 */
const FIELDS: Readonly<Record<string, (text: string) => boolean>> = {
  opts: (text) => isRecord(jsonOf(text)),
  progress: (text) => jsonOf(text) !== undefined,
  parent: (text) => isRecord(jsonOf(text)),
  parentKey: (text) => /.:[^:]+$/.test(text),
  ats: isCount,
  atm: isCount,
  attemptsMade: isCount,
  stc: isCount,
};

/** Removes the fields of a job that no program can read. Resolves to false if it has none. */
export async function repairJob(queue: Queue | Worker, redis: RedisLink, id: string): Promise<boolean> {
  const { client } = redis;
  const key = queue.toKey(id);
  const found = await redis.guard(client.hgetall(key));
  const wrong = Object.keys(FIELDS).filter(
    (name) => found[name] !== undefined && !FIELDS[name]!(found[name]),
  );
  if (wrong.length === 0) return false;
  // One without the other can't be read either.
  if (wrong.some((name) => name.startsWith('parent'))) wrong.push('parent', 'parentKey');
  await redis.guard(client.hdel(key, ...wrong));
  if (wrong.includes('opts')) await redis.guard(client.hset(key, 'opts', '{}'));
  return true;
}

/** A job of a queue; without `job`, Redis has only its id. */
interface FoundJob {
  readonly id: string;
  readonly job: Job | undefined;
}

/** Reads the oldest jobs of a state, up to a number of them. BullMQ leaves out those without data, and reads none if it can't read one. */
export async function readJobs(
  queue: Queue,
  redis: RedisLink,
  state: 'active' | 'completed' | 'failed',
  count: number,
): Promise<FoundJob[]> {
  const ids = await redis.guard(queue.getRanges([state], 0, count - 1, true));
  const read = async (id: string): Promise<FoundJob> => {
    const job: Job | undefined = await queue.getJob(id).catch(async (error: unknown) => {
      if (await repairJob(queue, redis, id)) return queue.getJob(id);
      throw error;
    });
    return { id, job };
  };
  return redis.guard(Promise.all([...new Set(ids)].map(read)));
}
