import type { Connector } from '../drivers/connector.js';
import type { PoolList } from '../pool/browser-pool.js';
import type { InputSource } from './input-source.js';
import type { MapSettings } from './options.js';
import type { Outcome, TaskCallback } from './outcome.js';
import type { OutcomeBuffer } from './outcome-buffer.js';
import type { Progress } from './progress.js';

/** What a job is started with. */
export interface JobPlan<Handles, Input, Value, Session extends object> {
  readonly pools: PoolList<Session>;
  readonly connector: Connector<Handles>;
  readonly fn: TaskCallback<Handles, Input, Value, Session>;
  readonly settings: MapSettings;
  readonly source: InputSource<Input>;
}

/** What the parts of a job share. */
export interface JobContext<Handles, Input, Value, Session extends object> extends JobPlan<
  Handles,
  Input,
  Value,
  Session
> {
  readonly progress: Progress;
  readonly outcomes: OutcomeBuffer<Outcome<Input, Value, Session>>;
  /** Aborts when no more tasks start. */
  readonly closed: AbortSignal;
  /** Aborts when the running tasks are ended without an outcome. */
  readonly signal: AbortSignal;
  /** Starts no more tasks. The running tasks end as usual, and then the job with this error. */
  readonly close: (error: unknown) => void;
  /** Ends the job at once with an error. */
  readonly fail: (error: unknown) => void;
}

/** The part of the context that does not depend on the automation library. */
export type TaskJob<Input, Value, Session extends object> = Omit<
  JobContext<unknown, Input, Value, Session>,
  'connector' | 'fn'
>;
