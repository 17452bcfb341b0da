import type { Chromium } from '../browser/chromium.js';
import { newId } from '../identifiers.js';

/** A browser of a pool. Idle or leased is not written here: it is idle while the pool's list holds it, leased while a `Lease` does. */
export class PooledChromium {
  readonly chromium: Chromium;
  /** When it last became idle, by `performance.now()`. */
  idleSince = performance.now();
  #sessionId = newId();
  #createdAt = new Date();

  constructor(chromium: Chromium) {
    this.chromium = chromium;
  }

  /** The session's id. It outlives a lease. */
  get sessionId(): string {
    return this.#sessionId;
  }

  get createdAt(): string {
    return this.#createdAt.toISOString();
  }

  /** For the quirk of services whose sessions last one lease. */
  renewSession(): void {
    this.#sessionId = newId();
    this.#createdAt = new Date();
  }
}
