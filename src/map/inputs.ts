import { InvalidOptionError } from '../shared/errors.js';
import { raceTimeout } from '../shared/abort.js';

/** Milliseconds that the caller's iterator has to close: one that waits inside may never do. */
const CLOSE_TIMEOUT = 1000;

/** The caller's inputs, one after the other. Nothing is asked of them before the first `pull`. */
export class Inputs<Input> {
  /** How many there are, where that is known without asking for them. */
  readonly size: number | undefined;

  readonly #inputs: Iterable<Input> | AsyncIterable<Input>;
  #iterator: Iterator<Input> | AsyncIterator<Input> | undefined;
  #pulled = 0;
  /** An iterator that has thrown or ended is closed: it is not to be closed again. */
  #isOver = false;

  constructor(inputs: Iterable<Input> | AsyncIterable<Input>) {
    if (typeof inputs !== 'object' || inputs === null || !isIterable(inputs)) {
      throw new InvalidOptionError(
        'inputs',
        'inputs must be an array, or another iterable or async iterable.',
      );
    }
    this.#inputs = inputs;
    this.size = sizeOf(inputs);
  }

  /** The next input, or `undefined` after the last. Rejects with what the iterable throws. */
  async pull(): Promise<{ index: number; input: Input } | undefined> {
    try {
      this.#iterator ??= iteratorOf(this.#inputs);
      const { done, value } = await this.#iterator.next();
      if (!done) return { index: this.#pulled++, input: value };
    } catch (error) {
      this.#isOver = true;
      throw error;
    }
    this.#isOver = true;
    return undefined;
  }

  /** Lets the iterable know that no more is wanted. */
  async close(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    const late = () => new Error('The iterator did not close');
    await raceTimeout(CLOSE_TIMEOUT, async () => this.#iterator?.return?.(), late).catch(() => {});
  }
}

function isIterable(inputs: object): boolean {
  return Symbol.asyncIterator in inputs || Symbol.iterator in inputs;
}

function iteratorOf<Input>(
  inputs: Iterable<Input> | AsyncIterable<Input>,
): Iterator<Input> | AsyncIterator<Input> {
  return Symbol.asyncIterator in inputs ? inputs[Symbol.asyncIterator]() : inputs[Symbol.iterator]();
}

function sizeOf(inputs: object): number | undefined {
  if (Array.isArray(inputs)) return inputs.length;
  return inputs instanceof Set || inputs instanceof Map ? inputs.size : undefined;
}
