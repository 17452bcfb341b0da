import { createHash } from 'node:crypto';
import type { Job } from 'bullmq';
import { withoutSecrets } from '../../shared/errors.js';
import { isRecord } from '../../shared/json.js';
import { QueueError } from '../../shared/lease-errors.js';
import { excerpt } from '../../shared/redact.js';
import {
  factsOf,
  isReason,
  recordOfOutcome,
  recordReason,
  type Outcome,
  type OutcomeRecord,
  type RecordedReason,
  type StoredFacts,
} from '../outcome.js';
import { isError } from '../../shared/globals.js';

export interface QueuedInput {
  readonly index: number;
  readonly input: unknown;
  readonly list: string;
  /** Time of each attempt, in ms. */
  readonly taskTimeout?: number | undefined;
}

/** What a job stores of an attempt, besides the input: a success as its return value, a failure as its progress. */
interface StoredAttempt extends StoredFacts {
  readonly value?: unknown;
  readonly reason?: RecordedReason;
}

/** The result of one input of a queue. */
export type QueuedOutcome = OutcomeRecord & {
  /** The list of the input, as passed to `enqueueInputs`. */
  readonly list: string;
};

/** The id of the job of an input: the same for the same input, so that BullMQ does not add it twice. */
export function idOf({ index, input, list }: QueuedInput): string {
  const digest = createHash('sha256')
    .update(JSON.stringify(input) ?? '')
    .digest('base64url');
  return `${list}-${index}-${digest.slice(0, 16)}`;
}

/** Whether `enqueueInputs` has added a job. Other programs may have put other jobs into the queue, also such of the same form. */
export function isInput(job: Job): job is Job<QueuedInput> {
  const data: unknown = job.data;
  if (!isRecord(data) || !Number.isSafeInteger(data['index']) || typeof data['list'] !== 'string')
    return false;
  try {
    return job.id === idOf(data as unknown as QueuedInput);
  } catch {
    // Too many objects within each other.
    return false;
  }
}

/**
 * Emits a warning about a job of another program or list, and returns its message.
 *
 * @param fate What happens to the job.
 */
export function reportForeign(job: Job, fate: string): string {
  const what = isInput(job)
    ? `is of the list ${excerpt(job.data.list, 100)}`
    : 'was not added by enqueueInputs';
  return warnOf(job.id, `of the queue ${job.queueName} ${what}: ${fate}. ${OWN_QUEUE}`);
}

/** Emits a warning about a job of which Redis has nothing but the id: it was evicted, or another program has deleted it. */
export function reportLost(id: string, queueName: string): void {
  warnOf(id, `of the queue ${queueName} is lost: Redis has no data of it. Its result is not collected.`);
}

/** Emits a warning about an input whose worker no longer holds it. */
export function reportLostWorker(job: Job): void {
  const what = isInput(job)
    ? `input ${job.data.index} (${excerpt(JSON.stringify(job.data.input) ?? '', 100)})`
    : `job ${job.id}`;
  const message = `A worker of the queue ${job.queueName} that had ${what} was killed or has lost Redis. The next free worker takes it over.`;
  process.emitWarning(message, 'PooledBrowserWarning');
}

function warnOf(id: string | undefined, what: string): string {
  const message = `The job ${excerpt(String(id), 100)} ${what}`;
  process.emitWarning(message, 'PooledBrowserWarning');
  return message;
}

const OWN_QUEUE = 'Use a queue of its own for each kind of job.';

export function storedAttempt(outcome: Outcome<unknown, unknown, object>): StoredAttempt {
  const {
    index: _index,
    input: _input,
    attempts: _attempts,
    status: _status,
    ...stored
  } = recordOfOutcome(outcome);
  return stored;
}

/**
 * Converts the error of a task for BullMQ, which stores the message and the stack.
 *
 * @param mayRetry If false, the job fails even if it has attempts left.
 */
export function storedError(reason: unknown, mayRetry: boolean): Error {
  const { name = 'Error', message } = recordReason(reason);
  const error = new Error(message);
  const copy = withoutSecrets(reason);
  if (isError(copy)) error.stack = copy.stack ?? message;
  // BullMQ compares the name.
  error.name = mayRetry ? name : 'UnrecoverableError';
  return error;
}

export function outcomeOf(job: Job<QueuedInput>, status: 'completed' | 'failed'): QueuedOutcome {
  const { index, input, list } = job.data;
  const facts = { index, input, list, attempts: job.attemptsMade || 0 };
  if (status === 'completed') {
    const stored: unknown = job.returnvalue;
    if (isStoredAttempt(stored))
      return { status: 'fulfilled', ...facts, ...factsOf(stored), value: stored.value };
    const message = `The job ${job.id} of the queue ${job.queueName} was completed by another program. ${OWN_QUEUE}`;
    const { name, code } = new QueueError(message);
    return { status: 'rejected', ...facts, reason: { name, code, message } };
  }
  const stored: StoredAttempt = isRecord(job.progress) ? job.progress : {};
  const { reason } = stored;
  // After the last attempt that failed, workers may have died with the job.
  if (isReason(reason) && reason.message === job.failedReason)
    return { status: 'rejected', ...facts, ...factsOf(stored), reason };
  // Another program may have failed it.
  const { failedReason: message = 'The job has no reason.' } = job as { failedReason?: string };
  return { status: 'rejected', ...facts, reason: { message } };
}

function isStoredAttempt(value: unknown): value is StoredAttempt {
  return isRecord(value) && typeof value['sessionId'] === 'string';
}
