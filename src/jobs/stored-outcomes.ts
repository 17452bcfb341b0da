import type { OutcomeRecord } from './outcome.js';

/** One line of a checkpoint. */
interface StoredOutcome {
  /** The input as JSON. */
  readonly key: string;
  readonly index: number;
  readonly status: OutcomeRecord['status'];
  /** Position of the line in the file, in bytes. */
  readonly start: number;
  /** Whether an input of this job has this outcome, or a newer line replaces it. */
  isTaken: boolean;
}

/** Returns an input as JSON; an empty text for `undefined`, which a record leaves out. */
export function keyOf(input: unknown): string {
  return input === undefined ? '' : JSON.stringify(input);
}

/** The outcomes that a checkpoint contained when the job began, and which of its lines newer lines replace. */
export class StoredOutcomes {
  /** Positions of the lines that a newer outcome of the same input replaces, in bytes. */
  readonly superseded = new Set<number>();

  readonly #retriesRejected: boolean;
  readonly #byIndex = new Map<number, StoredOutcome[]>();
  #byInput: Map<string, StoredOutcome[]> | undefined;
  /** The failed outcomes without a newer line, by index and input. */
  readonly #failed = new Map<string, StoredOutcome>();
  /** The failed outcomes of the inputs that run again, by the index of the input. */
  readonly #retried = new Map<number, StoredOutcome>();

  constructor({ retriesRejected }: { retriesRejected: boolean }) {
    this.#retriesRejected = retriesRejected;
  }

  /** Adds the next line of the file. */
  add({ index, input, status }: OutcomeRecord, start: number): void {
    const key = keyOf(input);
    const stored = { key, index, status, start, isTaken: false };
    // Only an input that failed is run again.
    const place = `${index} ${key}`;
    const old = this.#failed.get(place);
    if (old) {
      this.superseded.add(old.start);
      old.isTaken = true;
    }
    if (status === 'rejected') this.#failed.set(place, stored);
    else this.#failed.delete(place);
    const others = this.#byIndex.get(index);
    if (others) others.push(stored);
    else this.#byIndex.set(index, [stored]);
  }

  /**
   * Returns true if an input must not run. Each stored outcome belongs to one of several equal inputs.
   *
   * @param key The input, by `keyOf`.
   */
  has(key: string, index: number): boolean {
    const stored = this.#findAt(key, index) ?? this.#findElsewhere(key);
    if (!stored) return false;
    stored.isTaken = true;
    if (stored.status === 'fulfilled' || !this.#retriesRejected) return true;
    this.#retried.set(index, stored);
    return false;
  }

  /** Notes that an input has a new outcome in the file. */
  replace(index: number): void {
    const stored = this.#retried.get(index);
    if (stored) this.superseded.add(stored.start);
  }

  #findAt(key: string, index: number): StoredOutcome | undefined {
    return this.#byIndex.get(index)?.find((stored) => stored.key === key && !stored.isTaken);
  }

  /** The inputs may have another order than in the earlier job. An outcome with a value comes first. */
  #findElsewhere(key: string): StoredOutcome | undefined {
    this.#byInput ??= this.#groupByInput();
    const equal = this.#byInput.get(key);
    let stored = equal?.pop();
    while (stored?.isTaken) stored = equal!.pop();
    return stored;
  }

  #groupByInput(): Map<string, StoredOutcome[]> {
    const groups = new Map<string, StoredOutcome[]>();
    const all = [...this.#byIndex.values()].flat();
    const isFulfilled = ({ status }: StoredOutcome) => Number(status === 'fulfilled');
    for (const stored of all.toSorted((one, other) => isFulfilled(one) - isFulfilled(other))) {
      const group = groups.get(stored.key);
      if (group) group.push(stored);
      else groups.set(stored.key, [stored]);
    }
    return groups;
  }
}
