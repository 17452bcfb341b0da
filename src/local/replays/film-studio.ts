import type { Chromium } from '../browser/chromium.js';
import type { Film } from './local-replay.js';
import { StudioEncoder } from './studio-encoder.js';
import { writeFilm, type FilmOrder } from './write-film.js';

/** Milliseconds without a film after which the studio's Chromium is ended. */
const IDLE = 10_000;

/**
 * Makes films, one after the other, in a Chromium of its own: none of the pool's, which belong to their clients. It runs
 * only while there is work.
 */
export class FilmStudio {
  readonly #launch: (signal: AbortSignal) => Promise<Chromium>;
  readonly #closing = new AbortController();
  readonly #ends = new Set<Promise<void>>();
  #last: Promise<unknown> = Promise.resolve();
  #chromium: Chromium | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(launch: (signal: AbortSignal) => Promise<Chromium>) {
    this.#launch = launch;
  }

  /** Resolves when the film is on disk; nothing when there was no frame. A Chromium that crashes is given a second try. */
  make(order: FilmOrder): Promise<Film | undefined> {
    const film = this.#last.then(() => this.#attempt(order).catch(() => this.#attempt(order)));
    this.#last = film.catch(() => {});
    return film;
  }

  /** Gives up what is not made yet. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('The local pool is closing.'));
    this.#end();
    await this.#last;
    this.#end();
    await Promise.all(this.#ends);
  }

  async #attempt(order: FilmOrder): Promise<Film | undefined> {
    clearTimeout(this.#idle);
    this.#closing.signal.throwIfAborted();
    this.#chromium ??= await this.#launch(this.#closing.signal);
    const chromium = this.#chromium;
    try {
      const encoder = await StudioEncoder.open(chromium);
      const film = await writeFilm(order, encoder);
      await encoder.close();
      this.#idle = setTimeout(() => this.#end(), IDLE);
      return film;
    } catch (error) {
      // Whatever state it is in: the next film gets a new one.
      this.#end();
      throw error;
    }
  }

  #end(): void {
    clearTimeout(this.#idle);
    const ending = this.#chromium?.kill().finally(() => this.#ends.delete(ending!));
    this.#chromium = undefined;
    if (ending) this.#ends.add(ending);
  }
}
