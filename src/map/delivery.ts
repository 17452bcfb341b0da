/** Outcomes on their way to the caller: as they come, or in the order of their positions. */
export class Delivery<Item> {
  /** How many were handed out. */
  delivered = 0;

  readonly #ordered: boolean;
  readonly #onDelivered: () => void;
  readonly #ready = new Map<number, Item>();
  readonly #askers: Asker<Item>[] = [];
  #end: { error?: unknown } | undefined;

  /** @param onDelivered Called when there is room for one more. */
  constructor(ordered: boolean, onDelivered: () => void) {
    this.#ordered = ordered;
    this.#onDelivered = onDelivered;
  }

  next(): Promise<IteratorResult<Item, undefined>> {
    return new Promise((resolve, reject) => {
      this.#askers.push({ resolve, reject });
      this.#serve();
    });
  }

  push(position: number, item: Item): void {
    this.#ready.set(position, item);
    this.#serve();
  }

  /** No more will come. What is here is still handed out; after that the error is thrown, once. */
  end(failure: { error?: unknown } = {}): void {
    this.#end ??= failure;
    this.#serve();
  }

  /** Nothing is handed out any more. */
  discard(): void {
    this.#ready.clear();
    this.end();
  }

  #serve(): void {
    while (this.#askers.length > 0) {
      const position = this.#ordered ? this.delivered : (this.#ready.keys().next().value ?? 0);
      if (this.#ready.has(position)) this.#hand(position);
      else if (this.#end) this.#finish(this.#askers.shift()!);
      else return;
    }
  }

  #hand(position: number): void {
    const value = this.#ready.get(position) as Item;
    this.#ready.delete(position);
    this.delivered++;
    this.#askers.shift()!.resolve({ done: false, value });
    this.#onDelivered();
  }

  #finish({ resolve, reject }: Asker<Item>): void {
    const failure = this.#end!;
    this.#end = {};
    if ('error' in failure) reject(failure.error);
    else resolve({ done: true, value: undefined });
  }
}

interface Asker<Item> {
  resolve: (result: IteratorResult<Item, undefined>) => void;
  reject: (error: unknown) => void;
}
