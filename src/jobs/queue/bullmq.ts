import type * as BullMQ from 'bullmq';
import { isRecord } from '../../shared/json.js';
import { lazy } from '../../shared/lazy.js';
import { lazyLibrary } from '../../shared/lazy-library.js';

const importBullMQ = lazyLibrary('bullmq', () => import('bullmq'), ['ioredis']);

/**
 * Loads BullMQ's classes, so that they also read jobs whose data is not JSON. Otherwise one such job ends each worker and
 * each collector with a SyntaxError, at every start.
 */
export const loadBullMQ = lazy(async (): Promise<Pick<typeof BullMQ, 'Job' | 'Queue' | 'Worker'>> => {
  const bullmq = await importBullMQ();
  class TolerantJob extends bullmq.Job {
    static override fromJSON: typeof bullmq.Job.fromJSON = (queue, json, id) => {
      try {
        return withReadableSchedule(super.fromJSON(queue, json, id));
      } catch {
        return withReadableSchedule(super.fromJSON(queue, { ...json, data: 'null' }, id));
      }
    };
  }
  const Job = TolerantJob as typeof bullmq.Job;
  class Queue extends bullmq.Queue {
    protected override get Job(): typeof bullmq.Job {
      return Job;
    }
  }
  class Worker extends bullmq.Worker {
    protected override get Job(): typeof bullmq.Job {
      return Job;
    }
  }
  return { Job, Queue, Worker };
});

/** BullMQ would wait for a schedule that it can't read, and the worker would take no further job. */
function withReadableSchedule<One extends object>(job: One): One {
  const { opts } = job as { opts: object; repeatJobKey?: string };
  if (!isRecord(Reflect.get(opts, 'repeat'))) Reflect.deleteProperty(job, 'repeatJobKey');
  return job;
}
