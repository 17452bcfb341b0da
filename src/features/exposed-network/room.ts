import { raceAbort } from '../../shared/abort.js';

/** The memory for large bodies, in bytes: who needs more than is free waits, so that its server waits, too. Serves in order. */
export class Room {
  #free: number;
  readonly #queue: { readonly bytes: number; readonly enter: () => void }[] = [];

  constructor(bytes: number) {
    this.#free = bytes;
  }

  /** Waits for a number of bytes, at most those of the whole room. The returned function frees them, once. */
  async take(bytes: number, signal: AbortSignal): Promise<() => void> {
    let isTaken = true;
    const free = () => {
      if (!isTaken) return;
      isTaken = false;
      this.give(bytes);
    };
    const turn = new Promise<void>((resolve) => this.#queue.push({ bytes, enter: resolve }));
    this.#admit();
    // After an abort, the bytes are taken for a moment when their turn comes.
    await raceAbort(turn, signal).catch((reason: unknown) => {
      void turn.then(free);
      throw reason;
    });
    return free;
  }

  /** Takes a number of bytes without waiting. Returns false if they are not free. */
  tryTake(bytes: number): boolean {
    if (bytes > this.#free) return false;
    this.#free -= bytes;
    return true;
  }

  /** Frees bytes of `tryTake`. */
  give(bytes: number): void {
    this.#free += bytes;
    this.#admit();
  }

  #admit(): void {
    for (let next = this.#queue[0]; next && next.bytes <= this.#free; next = this.#queue[0]) {
      this.#queue.shift();
      this.#free -= next.bytes;
      next.enter();
    }
  }
}
