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
      this.#free += bytes;
      this.#admit();
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

  #admit(): void {
    for (let next = this.#queue[0]; next && next.bytes <= this.#free; next = this.#queue[0]) {
      this.#queue.shift();
      this.#free -= next.bytes;
      next.enter();
    }
  }
}
