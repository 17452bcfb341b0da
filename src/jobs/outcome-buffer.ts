/** The outcomes of a job that the loop has not received yet. */
export class OutcomeBuffer<Outcome> {
  readonly #isOrdered: boolean;
  readonly #byPosition = new Map<number, Outcome>();
  #received = 0;
  #end: { error?: unknown; hasFailed: boolean } | undefined;
  #wake = () => {};

  constructor(isOrdered: boolean) {
    this.#isOrdered = isOrdered;
  }

  get size(): number {
    return this.#byPosition.size;
  }

  /** @param position Position among the inputs that are run. */
  add(position: number, outcome: Outcome): void {
    this.#byPosition.set(position, outcome);
    this.#wake();
  }

  /** The loop ends after the outcomes that are left, with an error if there is one. Later calls change nothing. */
  end(failure?: { error: unknown }): void {
    this.#end ??= { hasFailed: failure !== undefined, error: failure?.error };
    this.#wake();
  }

  /** Yields the outcomes as they come, or in the order of the inputs; then throws the error that ended the job. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Outcome, undefined, void> {
    for (;;) {
      const position = this.#nextPosition();
      const outcome = this.#byPosition.get(position);
      if (outcome) {
        this.#byPosition.delete(position);
        this.#received++;
        yield outcome;
      } else if (!this.#end) await new Promise<void>((resolve) => (this.#wake = resolve));
      else if (this.#end.hasFailed) throw this.#end.error;
      else return undefined;
    }
  }

  /** After the end of a job, the order of the inputs has gaps: tasks without an outcome. */
  #nextPosition(): number {
    if (!this.#isOrdered) return this.#byPosition.keys().next().value ?? 0;
    if (!this.#end || this.#byPosition.has(this.#received)) return this.#received;
    return Math.min(...this.#byPosition.keys());
  }
}
