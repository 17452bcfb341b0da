import { inspect } from 'node:util';
import type { Replay } from '../services/browser-service.js';
import type { DownloadedFile } from '../features/files/options.js';
import type { FeatureFacts } from '../features/options.js';
import type { BrowserSession } from '../services/kernel-api.js';
import { LONGEST_TIMER } from '../shared/clock.js';
import { InvalidOptionError, isPooledBrowserError } from '../shared/errors.js';
import { isRecord, propertyOf } from '../shared/json.js';
import { TaskResultError } from '../shared/lease-errors.js';
import { excerpt, shortened } from '../shared/redact.js';

interface OutcomeFacts<Input, Session extends object> {
  /** Position of the input among all inputs, from 0. */
  index: number;
  /** The input of the task. */
  input: Input;
  /** The session in which the last attempt ran. */
  session: Session;
  /** Id of that session. */
  sessionId: string;
  /** Number of attempts that were started. */
  attempts: number;
  /**
   * With `replays: 'record'`, the recording that shows the last attempt. Its video is written after the browser was
   * released. Other recordings are known only then: the event `replays` lists them by session id.
   */
  replays: readonly Replay[];
  /** Link to the moment at which the last attempt failed, in a recording of this process. */
  moment?: string;
  /** Paths of the files that the option `artifacts` collected, of all attempts. */
  artifacts: readonly string[];
  /** The files that arrived in the folder of the option `downloads`, of all attempts. */
  downloads: readonly DownloadedFile[];
}

/** The result of an input whose task succeeded. */
export interface FulfilledOutcome<Input, Value, Session extends object = BrowserSession> extends OutcomeFacts<
  Input,
  Session
> {
  /** `'fulfilled'` or `'rejected'`. */
  status: 'fulfilled';
  /** The value that the callback returned. */
  value: Value;
}

/** The result of an input whose last attempt failed. */
export interface RejectedOutcome<Input, Session extends object = BrowserSession> extends OutcomeFacts<
  Input,
  Session
> {
  /** `'fulfilled'` or `'rejected'`. */
  status: 'rejected';
  /** The error of the task, unchanged, `TaskTimeoutError` or `BrowserLostError`. */
  reason: unknown;
}

/** The result of one input: its value, or the reason why it failed. */
export type Outcome<Input, Value, Session extends object = BrowserSession> =
  FulfilledOutcome<Input, Value, Session> | RejectedOutcome<Input, Session>;

/** One attempt at a task. */
export interface AttemptFacts {
  /** The input of the task. */
  input: unknown;
  /** Position of the input among all inputs, from 0. */
  index: number;
  /** Number of the attempt, from 1. */
  attempt: number;
}

/** The part of the callback's argument that does not come from the automation library. */
export interface TaskFacts<Input, Session extends object = BrowserSession> extends FeatureFacts {
  /** The input of this task. */
  input: Input;
  /** Position of the input among all inputs, from 0. */
  index: number;
  /** The leased session. */
  session: Session;
  /** Aborts when the task must end: because of its timeout, the loss of its browser, or the end of the iteration. */
  signal: AbortSignal;
  /** Number of this attempt, from 1. */
  attempt: number;
}

/** The task of `mapPooledBrowsers`. It is called once per attempt. */
export type TaskCallback<Handles, Input, Value, Session extends object = BrowserSession> = (
  task: Handles & TaskFacts<Input, Session>,
) => Value | PromiseLike<Value>;

/** Whether a task may have another attempt: not if it returned no data or its options were refused, which would not change. */
export async function mayRetry(
  reason: unknown,
  attempt: AttemptFacts,
  shouldRetry: ((error: unknown, attempt: AttemptFacts) => boolean | PromiseLike<boolean>) | undefined,
): Promise<boolean> {
  const isOurs = isPooledBrowserError(reason);
  if (isOurs && (reason instanceof TaskResultError || reason instanceof InvalidOptionError)) return false;
  if (pauseOf(reason) > LONGEST_TIMER) return false;
  return (await shouldRetry?.(reason, attempt)) ?? true;
}

/** How long an error asks to wait, in ms: its `retryAfter`. */
export function pauseOf(reason: unknown): number {
  const pause = propertyOf(reason, 'retryAfter');
  return typeof pause === 'number' && pause > 0 ? pause : 0;
}

/** @inline */
interface RecordFacts extends Pick<OutcomeFacts<unknown, object>, 'index' | 'input' | 'attempts'> {
  /** Session of the last attempt. `pooled-browser replays` lists its recordings. */
  sessionId?: string;
  /** Links to the recordings that were known when the task ended. */
  replays?: string[];
  /** Link to the moment at which the last attempt failed. */
  moment?: string;
  /** Paths of the artifacts of all attempts. */
  artifacts?: readonly string[];
  /** The files that all attempts downloaded. */
  downloads?: readonly DownloadedFile[];
}

/** An outcome as one line of a checkpoint. */
export type OutcomeRecord =
  | (RecordFacts & { status: 'fulfilled'; value?: unknown })
  | (RecordFacts & { status: 'rejected'; reason: RecordedReason });

/** The part of a task's error that JSON can represent. */
export interface RecordedReason {
  /** Name of the error class. */
  name?: string;
  /** The `code` of the error, if it is a string. */
  code?: string;
  /** The message, without secrets. */
  message: string;
}

/** Converts an outcome for storage. Only the id of the session is stored, because its URLs are secrets. */
export function recordOfOutcome(outcome: Outcome<unknown, unknown, object>): OutcomeRecord {
  const { index, input, attempts, sessionId, artifacts, downloads, moment } = outcome;
  const replays = outcome.replays.flatMap((replay) => replay.replay_view_url ?? []);
  const links = {
    ...(replays.length > 0 && { replays }),
    ...(moment !== undefined && { moment }),
    ...(artifacts.length > 0 && { artifacts }),
    ...(downloads.length > 0 && { downloads }),
  };
  const facts = { index, input, attempts, sessionId, ...links };
  return outcome.status === 'fulfilled'
    ? { status: 'fulfilled', ...facts, value: outcome.value }
    : { status: 'rejected', ...facts, reason: recordReason(outcome.reason) };
}

/** Longest message, name and code that are stored, in characters. */
const LONGEST_MESSAGE = 10_000;
const LONGEST_NAME = 200;

/** Converts what a task threw for storage, without secrets and colors. A task may throw any value, also one that can't be read. */
export function recordReason(reason: unknown): RecordedReason {
  // A page chooses the name of its errors.
  const name = excerpt(textOf(reason, 'name') ?? '', LONGEST_NAME);
  const code = excerpt(textOf(reason, 'code') ?? '', LONGEST_NAME);
  const message = textOf(reason, 'message');
  const facts = { ...(name && { name }), ...(code && { code }) };
  if (message !== undefined)
    return { ...facts, message: shortened(message || messagesIn(reason), LONGEST_MESSAGE) };
  return { message: shortened(typeof reason === 'string' ? reason : shown(reason), LONGEST_MESSAGE) };
}

/** A property that is a text. The name of a function is not the name of an error. */
function textOf(reason: unknown, property: string): string | undefined {
  const text = typeof reason === 'object' ? propertyOf(reason, property) : undefined;
  return typeof text === 'string' ? text : undefined;
}

/** An `AggregateError`, as of a refused connection, may have messages only in its parts. */
function messagesIn(reason: unknown): string {
  const parts = propertyOf(reason, 'errors');
  const messages = Array.isArray(parts) ? parts.map((part: unknown) => textOf(part, 'message') ?? '') : [];
  return messages.filter(Boolean).join('; ');
}

function shown(value: unknown): string {
  try {
    // Neither calls getters nor the traps of a proxy.
    return inspect(value, { depth: 1, breakLength: Number.POSITIVE_INFINITY });
  } catch {
    return 'a value that cannot be shown';
  }
}

export function isOutcomeRecord(value: unknown): value is OutcomeRecord {
  if (!isRecord(value) || !Number.isSafeInteger(value['index'])) return false;
  if (Object.entries(FACTS).some(([name, isFact]) => name in value && !isFact(value[name]))) return false;
  return value['status'] === 'fulfilled' || (value['status'] === 'rejected' && isReason(value['reason']));
}

const isText = (value: unknown): boolean => typeof value === 'string';
const isListOf = (value: unknown, isOne: (one: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isOne);

/** What an attempt stores besides its outcome, and what each of it can be: another program may have written it. */
const FACTS: Readonly<Record<keyof StoredFacts, (value: unknown) => boolean>> = {
  sessionId: isText,
  replays: (value) => isListOf(value, isText),
  moment: isText,
  artifacts: (value) => isListOf(value, isText),
  downloads: (value) => isListOf(value, isRecord),
};

/** What an attempt stores besides its outcome. */
export type StoredFacts = Pick<RecordFacts, 'sessionId' | 'replays' | 'moment' | 'artifacts' | 'downloads'>;

/** Reads the facts of a stored attempt. It replaces neither the input nor the status of its job, and what can't be read is left out. */
export function factsOf(stored: object): StoredFacts {
  const values = stored as Record<string, unknown>;
  const found = Object.entries(FACTS).filter(([name, isFact]) => isFact(values[name]));
  return Object.fromEntries(found.map(([name]) => [name, values[name]]));
}

export function isReason(value: unknown): value is RecordedReason {
  return isRecord(value) && typeof value['message'] === 'string';
}
