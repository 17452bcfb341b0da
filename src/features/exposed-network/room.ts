import { raceAbort } from '../../shared/abort.js';

/** The memory for large bodies, in bytes: who needs more than is free waits, so that its server waits, too. Serves in order. */
export class Room {
  #free: number;
  readonly #queue: { readonly bytes: number; readonly enter: () => void }[] = [];

  constructor(bytes: number) {
    this.#free = bytes;
  }

  /** Waits for a number of bytes, at most those of the whole room. */
  async take(bytes: number, signal: AbortSignal): Promise<void> {
    const turn = new Promise<void>((resolve) => this.#queue.push({ bytes, enter: resolve }));
    this.#admit();
    // After an abort, the bytes are taken for a moment when their turn comes.
    await raceAbort(turn, signal, () => this.give(bytes));
  }

  /** Takes a number of bytes without waiting. Returns false if they are not free. */
  tryTake(bytes: number): boolean {
    if (bytes > this.#free) return false;
    this.#free -= bytes;
    return true;
  }

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

/** What one body occupies of a room. */
export class Share {
  #room: Room | undefined;
  #bytes = 0;

  get isTaken(): boolean {
    return this.#bytes > 0;
  }

  /** Waits for a number of bytes. */
  async take(room: Room, bytes: number, signal: AbortSignal): Promise<void> {
    await room.take(bytes, signal);
    this.#room = room;
    this.#bytes = bytes;
  }

  /** Takes the bytes that are missing to a number, and frees those of another room. Returns false if they are not free. */
  tryGrow(room: Room, bytes: number): boolean {
    const held = room === this.#room ? this.#bytes : 0;
    const missing = Math.max(0, bytes - held);
    if (!room.tryTake(missing)) return false;
    if (room !== this.#room) this.free();
    this.#room = room;
    this.#bytes = held + missing;
    return true;
  }

  free(): void {
    this.#room?.give(this.#bytes);
    this.#room = undefined;
    this.#bytes = 0;
  }
}
