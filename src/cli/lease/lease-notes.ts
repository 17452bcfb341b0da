import type { RunEvent } from '../../lease/events.js';
import { note } from '../note.js';

/** Tells the person what holds a lease up, or goes wrong with it; each thing once, however often it is tried. */
export class LeaseNotes {
  readonly #acquireTimeout: number;
  readonly #say: (text: string) => void;
  #last: string | undefined;

  /** @param acquireTimeout How long a browser is waited for, in ms. */
  constructor(acquireTimeout: number, say = note) {
    this.#acquireTimeout = acquireTimeout;
    this.#say = say;
  }

  readonly add = (event: RunEvent): void => {
    const text = this.#describe(event);
    if (text === undefined || text === this.#last) return;
    this.#last = text;
    this.#say(text);
  };

  #describe(event: RunEvent): string | undefined {
    switch (event.type) {
      case 'waiting':
        return `${event.error?.message ?? `No browser of pool ${event.pool} is free.`} ${this.#patience}`;
      case 'outcome-unknown':
        return `${event.error.message} A browser may be leased now, until its inactivity time-out ends it.`;
      case 'release-failed':
        return event.error.message;
      case 'recording-unavailable':
        return `Not recorded: ${event.error.message}`;
      default:
        return undefined;
    }
  }

  get #patience(): string {
    return `Asks again, for ${this.#acquireTimeout / 1000} s in all.`;
  }
}
