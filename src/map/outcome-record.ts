import { isRecord } from '../internal/is-record.js';
import { redact } from '../internal/redact.js';
import type { Outcome } from './outcome.js';

interface RecordFacts {
  /** Place of the input among all inputs of its job. */
  index: number;
  input: unknown;
  attempts: number;
}

/** An outcome as a line of a checkpoint. */
export type OutcomeRecord =
  | (RecordFacts & { status: 'fulfilled'; value?: unknown })
  | (RecordFacts & { status: 'rejected'; reason: RecordedReason });

/** What a task threw, as far as JSON can hold it. */
export interface RecordedReason {
  name?: string;
  code?: string;
  message: string;
}

/** The outcome as it goes into the file: without the session, whose URLs are secrets. */
export function recordOf(outcome: Outcome<unknown, unknown>): OutcomeRecord {
  const { index, input, attempts } = outcome;
  return outcome.status === 'fulfilled'
    ? { status: 'fulfilled', index, input, attempts, value: outcome.value }
    : { status: 'rejected', index, input, attempts, reason: recordReason(outcome.reason) };
}

function recordReason(reason: unknown): RecordedReason {
  if (!(reason instanceof Error)) return { message: redact(String(reason)) };
  const code: unknown = Reflect.get(reason, 'code');
  const message = redact(reason.message);
  return { name: reason.name, ...(typeof code === 'string' && { code }), message };
}

export function isOutcomeRecord(value: unknown): value is OutcomeRecord {
  if (!isRecord(value) || !Number.isSafeInteger(value['index'])) return false;
  return value['status'] === 'fulfilled' || value['status'] === 'rejected';
}
