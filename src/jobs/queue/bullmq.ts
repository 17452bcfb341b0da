import type * as BullMQ from 'bullmq';
import { lazy, lazyLibrary } from '../../shared/lazy.js';

const importBullMQ = lazyLibrary('bullmq', () => import('bullmq'));

/**
 * Loads BullMQ's classes, so that they also read jobs whose data is not JSON. Otherwise one such job ends each worker and
 * each collector with a SyntaxError, at every start.
 */
export const loadBullMQ = lazy(async (): Promise<Pick<typeof BullMQ, 'Job' | 'Queue' | 'Worker'>> => {
  const bullmq = await importBullMQ();
  class TolerantJob extends bullmq.Job {
    static override fromJSON: typeof bullmq.Job.fromJSON = (queue, json, id) => {
      try {
        return super.fromJSON(queue, json, id);
      } catch {
        return super.fromJSON(queue, { ...json, data: 'null' }, id);
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
