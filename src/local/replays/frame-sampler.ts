import type { Frame } from './frame.js';

/**
 * Lets one frame through for each interval: the last one in it. The first would leave out what a page that went still
 * shows in the end.
 */
export class FrameSampler {
  readonly #interval: number;
  readonly #onFrame: (frame: Frame) => void;
  #latest: Frame | undefined;

  constructor(interval: number, onFrame: (frame: Frame) => void) {
    this.#interval = interval;
    this.#onFrame = onFrame;
  }

  add(frame: Frame): void {
    if (this.#latest && this.#slot(frame) > this.#slot(this.#latest)) this.flush();
    this.#latest = frame;
  }

  /** Lets the last one through. */
  flush(): void {
    if (this.#latest) this.#onFrame(this.#latest);
    this.#latest = undefined;
  }

  #slot({ at }: Frame): number {
    return Math.floor(at / this.#interval);
  }
}
