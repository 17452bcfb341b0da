import type { BrowserSession, Replay } from '../service/wire.js';

interface OutcomeFacts<Input> {
  /** Place of the input among all inputs, from 0. */
  index: number;
  input: Input;
  /** The session that the last attempt ran in. */
  session: BrowserSession;
  /** How often the task was begun. */
  attempts: number;
  /**
   * With `replays: 'record'`, the recording that shows the last attempt; its film is written once the browser has been
   * given back. Other recordings are known only then: the event `replays` tells them, with the id of the session.
   */
  replays: readonly Replay[];
}

export interface FulfilledOutcome<Input, Value> extends OutcomeFacts<Input> {
  status: 'fulfilled';
  /** What the callback returned. */
  value: Value;
}

export interface RejectedOutcome<Input> extends OutcomeFacts<Input> {
  status: 'rejected';
  /** What the callback threw, unchanged; `TaskTimeoutError`; `BrowserLostError`. */
  reason: unknown;
}

/** What became of one input. */
export type Outcome<Input, Value> = FulfilledOutcome<Input, Value> | RejectedOutcome<Input>;

/** What the callback gets besides its library's browser, context and page. */
export interface TaskFacts<Input> {
  input: Input;
  /** Place of the input among all inputs, from 0. */
  index: number;
  /** The leased session. */
  session: BrowserSession;
  /** Aborts when the task must end: by its time limit, the loss of its browser, or the end of the iteration. */
  signal: AbortSignal;
  /** Which attempt of this task it is, from 1. */
  attempt: number;
}

/** The callback: called once per attempt. */
export type TaskCallback<Handles, Input, Value> = (
  task: Handles & TaskFacts<Input>,
) => Value | PromiseLike<Value>;
