/** A priority queue: the least comes first. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #compare: (a: T, b: T) => number;

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  push(item: T): void {
    let index = this.#items.push(item) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#isLess(index, parent)) return;
      this.#swap(index, parent);
      index = parent;
    }
  }

  pop(): T | undefined {
    const [first] = this.#items;
    const last = this.#items.pop();
    if (this.#items.length === 0) return first;
    this.#items[0] = last!;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      if (left >= this.#items.length) return first;
      const right = left + 1;
      const least = right < this.#items.length && this.#isLess(right, left) ? right : left;
      if (!this.#isLess(least, index)) return first;
      this.#swap(index, least);
      index = least;
    }
  }

  #isLess(a: number, b: number): boolean {
    return this.#compare(this.#items[a]!, this.#items[b]!) < 0;
  }

  #swap(a: number, b: number): void {
    [this.#items[a], this.#items[b]] = [this.#items[b]!, this.#items[a]!];
  }
}
