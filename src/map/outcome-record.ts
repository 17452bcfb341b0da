import { isRecord } from '../shared/json.js';
import { redact } from '../shared/redact.js';
import type { Outcome } from './outcome.js';

interface RecordFacts {
  /** Place of the input among all inputs of its job. */
  index: number;
  input: unknown;
  attempts: number;
  /** Of the last attempt: `pooled-browser replays` lists its recordings. */
  sessionId?: string;
  /** Links to the recordings that show it, as far as they were known. */
  replays?: string[];
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

/** The outcome as it goes into the file: of the session only the id, for its URLs are secrets. */
export function recordOf(outcome: Outcome<unknown, unknown>): OutcomeRecord {
  const { index, input, attempts, session } = outcome;
  const replays = outcome.replays.flatMap((replay) => replay.replay_view_url ?? []);
  const facts = {
    index,
    input,
    attempts,
    sessionId: session.session_id,
    ...(replays.length > 0 && { replays }),
  };
  return outcome.status === 'fulfilled'
    ? { status: 'fulfilled', ...facts, value: outcome.value }
    : { status: 'rejected', ...facts, reason: recordReason(outcome.reason) };
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
