import { crc32 } from 'node:zlib';
import type { OutcomeRecord } from '../jobs/outcome.js';
import { keyOf } from '../jobs/stored-outcomes.js';
import { excerpt } from '../shared/redact.js';
import { showInput } from './input-formats.js';
import { expectAtLeast, otherInputs, type InputCheck } from './map-inputs.js';

/** States of an input. */
const FAILED_EARLIER = 1;
const DONE = 2;

/**
 * What is known of each input, in five bytes: a checksum, and whether it has a result. A job of a queue may have more
 * inputs than fit into memory.
 */
export class KnownInputs implements InputCheck {
  /** Positions in the file of results whose input has a newer result, in bytes. */
  readonly superseded = new Set<number>();

  readonly #name: string;
  readonly #failed = new Map<number, number>();
  #checksums = new Uint32Array(1024);
  #states = new Uint8Array(1024);
  #length = 0;
  #skipped = 0;
  #done = 0;

  /** @param name The queue, or the file of results, for messages. */
  constructor(name: string) {
    this.#name = name;
  }

  /** Number of inputs that succeeded in an earlier job. */
  get skipped(): number {
    return this.#skipped;
  }

  /** Number of inputs without a result. */
  get missing(): number {
    return this.#length - this.#done;
  }

  /** Adds a result of an earlier job. */
  load({ index, input, status }: OutcomeRecord, start: number): void {
    this.check(input, index);
    this.#supersede(index);
    if (status === 'rejected') {
      this.#failed.set(index, start);
      this.#states[index] = FAILED_EARLIER;
    } else if (this.#finish(index)) this.#skipped++;
  }

  /** Throws if an earlier job, or the queue, has another input at this index. */
  readonly check = (input: unknown, index: number): void => {
    this.#growTo(index + 1);
    // Never 0, which stands for an input that is not known.
    const checksum = crc32(keyOf(input)) || 1;
    const known = this.#checksums[index]!;
    this.#checksums[index] = checksum;
    if (known === 0 || known === checksum) return;
    const what = `input ${index + 1} is ${excerpt(showInput(input), 100)}, and was another one`;
    throw otherInputs(this.#name, what, ANOTHER_PLACE);
  };

  /** Must be called before the queue has returned results: another command may have added more inputs. */
  readonly end = (count: number): void => expectAtLeast(this.#length, count, this.#name, ANOTHER_PLACE);

  hasResult(index: number): boolean {
    return this.#states[index] === DONE;
  }

  /** Returns false if the input has a result already: a task can run twice when Redis or a worker fails. */
  finish(input: unknown, index: number): boolean {
    this.check(input, index);
    if (!this.#finish(index)) return false;
    this.#supersede(index);
    return true;
  }

  #finish(index: number): boolean {
    if (this.#states[index] === DONE) return false;
    this.#states[index] = DONE;
    this.#done++;
    return true;
  }

  #supersede(index: number): void {
    const start = this.#failed.get(index);
    if (start !== undefined) this.superseded.add(start);
    this.#failed.delete(index);
  }

  #growTo(length: number): void {
    this.#length = Math.max(this.#length, length);
    if (length <= this.#states.length) return;
    const size = Math.max(length, 2 * this.#states.length);
    const [checksums, states] = [new Uint32Array(size), new Uint8Array(size)];
    checksums.set(this.#checksums);
    states.set(this.#states);
    this.#checksums = checksums;
    this.#states = states;
  }
}

const ANOTHER_PLACE = 'or another queue and file';
