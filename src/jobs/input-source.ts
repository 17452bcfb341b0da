import { raceTimeout } from '../shared/abort.js';
import { InvalidOptionError } from '../shared/errors.js';
import type { Outcome } from './outcome.js';
import { isOf } from '../shared/globals.js';

/** Where inputs come from and outcomes go. Inputs are pulled one after the other, when a browser needs one. */
export interface InputSource<Input> {
  /** Number of inputs, if it is known. */
  readonly size?: number | undefined;
  /** Whether other jobs pull from the same source. They may have all browsers of a pool. */
  readonly hasOtherJobs?: boolean;
  /** Whether outcomes are stored as JSON: a task whose value is something else fails. */
  readonly storesJson?: boolean;
  /** Resolves with the next input, with `'skipped'` if it must not run, or with `undefined` after the last one. */
  pull(): Promise<PulledInput<Input> | 'skipped' | undefined>;
  /** Called when the tasks are finished or stopped and no more inputs are pulled. A rejection is the error of the job. */
  close(): Promise<void>;
}

/** A source that stores no outcomes. */
export interface IterableSource<Input> extends InputSource<Input> {
  pull(): Promise<Pick<PulledInput<Input>, 'input' | 'index'> | undefined>;
}

/** An input as its source delivers it. */
export interface PulledInput<Input> {
  readonly input: Input;
  /** Position among all inputs, from 0. */
  readonly index: number;
  /** Number of attempts that other jobs have started. Default: 0. */
  readonly attempts?: number;
  /** Timeout of each attempt, in ms. Default: the option of the job. */
  readonly taskTimeout?: number;
  /**
   * Stores the outcome before the loop receives it. Resolves to false if the source runs the input again: there is no outcome
   * then. A rejection ends the job.
   *
   * @param signal Aborts when the job ends without the outcome.
   */
  readonly settle?: (outcome: Outcome<unknown, unknown, object>, signal: AbortSignal) => Promise<boolean>;
  /** Takes the input back, for other jobs with the same source, while no browser is available here. */
  readonly returnToSource?: () => void;
}

/** Timeout for closing the caller's iterator, in ms. An iterator that waits for its next input may never close. */
const CLOSE_TIMEOUT = 1000;

/** Pulls the inputs from an iterable of the caller. */
export function iterableSource<Input>(inputs: Iterable<Input> | AsyncIterable<Input>): IterableSource<Input> {
  if (!isIterable(inputs)) {
    throw new InvalidOptionError('inputs', 'inputs must be an array or another iterable or async iterable.');
  }
  let iterator: Iterator<Input> | AsyncIterator<Input> | undefined;
  let pulled = 0;
  // An iterator that has thrown or ended must not be closed again.
  let isOver = false;
  return {
    size: sizeOf(inputs),
    pull: async () => {
      try {
        iterator ??=
          Symbol.asyncIterator in inputs ? inputs[Symbol.asyncIterator]() : inputs[Symbol.iterator]();
        const { done, value } = await iterator.next();
        if (!done) return { index: pulled++, input: value };
      } catch (error) {
        isOver = true;
        throw error;
      }
      isOver = true;
      return undefined;
    },
    close: async () => {
      if (isOver) return;
      isOver = true;
      await raceTimeout(CLOSE_TIMEOUT, async () => iterator?.return?.()).catch(() => {});
    },
  };
}

function isIterable(inputs: unknown): boolean {
  if (typeof inputs !== 'object' || inputs === null) return false;
  return Symbol.asyncIterator in inputs || Symbol.iterator in inputs;
}

function sizeOf(inputs: object): number | undefined {
  if (Array.isArray(inputs)) return inputs.length;
  return isOf(inputs, 'Set', 'Map') ? (inputs as ReadonlySet<unknown>).size : undefined;
}
