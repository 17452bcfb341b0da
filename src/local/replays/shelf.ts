import { rm } from 'node:fs/promises';
import type { Recording } from './recording.js';

/** All recordings, the oldest first. Those that are finished make room for later ones. */
export class Shelf {
  readonly #recordings: Recording[] = [];

  add(recording: Recording): void {
    this.#recordings.push(recording);
  }

  list(sessionId?: string): readonly Recording[] {
    return this.#recordings.filter((one) => sessionId === undefined || one.sessionId === sessionId);
  }

  /** Removes the oldest of those that are finished until no more than so many are. */
  keep(most: number): void {
    while (this.#recordings.filter(isFinished).length > most) this.#removeOldest();
  }

  /** Removes the oldest of those that are finished until so many bytes more fit in; false when they don't. */
  makeRoom(bytes: number, most: number): boolean {
    while (this.#bytes + bytes > most) if (!this.#removeOldest()) return false;
    return true;
  }

  remove(recording: Recording): void {
    const place = this.#recordings.indexOf(recording);
    if (place !== -1) this.#recordings.splice(place, 1);
    if (recording.film) rm(recording.film.path, { force: true }).catch(() => {});
  }

  get #bytes(): number {
    return this.#recordings.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #removeOldest(): boolean {
    const oldest = this.#recordings.find(isFinished);
    if (oldest) this.remove(oldest);
    return oldest !== undefined;
  }
}

function isFinished({ finishedAt }: Recording): boolean {
  return finishedAt !== undefined;
}
