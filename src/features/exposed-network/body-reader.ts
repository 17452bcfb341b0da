import type { Readable } from 'node:stream';
import { clock, delay } from '../../shared/clock.js';
import type { Received, ResponseHead } from './exposed-request.js';
import { Room } from './room.js';

/** When a response that does not end is cut, in ms. CDP has no command that delivers a response in parts. */
export interface StreamLimits {
  /** Without a byte. */
  readonly silence: number;
  /** From the beginning of a response that does not name its length. */
  readonly total: number;
  /** From the beginning of one that can continue. */
  readonly continued: number;
}

export const LIMITS: StreamLimits = { silence: 10_000, total: 30_000, continued: 300 };
/** Maximum size of a body in bytes: Chromium closes a connection with a message of more than 100 MB, which is encoded in base64. */
const LARGEST_BODY = 64 * 1024 * 1024;
/** Size in bytes of a body from which a page that can reads it in parts: the browser would hold it several times. */
export const LONG_BODY = 16 * 1024 * 1024;
/** Size in bytes of a body that waits for no memory. */
const SMALL_BODY = 1024 * 1024;

/** A fault of a request, which the console of its page explains. */
export class ShownError extends Error {}

/** The body of a response is larger than CDP can carry. */
export class TooLargeError extends ShownError {
  constructor() {
    super('the response has more than 64 MB, which can not be sent to the browser.');
  }
}

/** The body of a response. */
export interface Body {
  /** Whoever sends it may remove its parts. */
  readonly body: Buffer[];
  /** The response did not end in time: `body` is its beginning. */
  readonly isCut: boolean;
  /** What has not been read of the body. */
  readonly rest?: Readable;
  /** Frees the memory that the body has occupied: others wait for it. */
  free(this: void): void;
}

/** A response as a page receives it. */
export interface ExposedResponse extends ResponseHead, Body {}

/** A response of whose body some has not been read. */
export type Unread = ExposedResponse & { readonly rest: Readable };

/** Reads the bodies of responses, which share a memory. */
export class Bodies {
  readonly limits: StreamLimits;
  /** The memory for larger bodies that are delivered as a whole. */
  readonly whole = new Room(2 * LARGEST_BODY);
  /** The memory for the beginnings of those whose pages can read the rest, until they do. */
  readonly beginnings = new Room(LARGEST_BODY);

  constructor(limits: StreamLimits = LIMITS) {
    this.limits = limits;
  }

  /**
   * Reads a body until its end, or until it is cut. While others occupy the memory, nothing is read: its server waits.
   *
   * @param canContinue Whether the page can read the rest of a body that is large, or does not end soon.
   */
  async read(received: Received, canContinue: () => boolean, signal: AbortSignal): Promise<ExposedResponse> {
    const { stream } = received;
    const body = stream
      ? await new BodyReader(stream, this, { ...received, canContinue }).read(signal)
      : { body: [], isCut: false, free: () => {} };
    return { ...received, ...body };
  }
}

interface HowToRead extends Pick<Received, 'length' | 'hasLength'> {
  canContinue(this: void): boolean;
}

class BodyReader {
  readonly #source: Readable;
  readonly #memory: Bodies;
  readonly #how: HowToRead;
  #canContinue = false;
  readonly #body: Buffer[] = [];
  #size = 0;
  #silent: NodeJS.Timeout | undefined;
  #longest: NodeJS.Timeout | undefined;
  #free: (() => void) | undefined;
  /** Bytes of the memory for beginnings. */
  #held = 0;
  #isOver = false;

  constructor(source: Readable, memory: Bodies, how: HowToRead) {
    this.#source = source;
    this.#memory = memory;
    this.#how = how;
  }

  async read(signal: AbortSignal): Promise<Body> {
    const source = this.#source;
    const { length = 0 } = this.#how;
    this.#check();
    if (length > LARGEST_BODY && !this.#canContinue) {
      await delay(this.#memory.limits.continued, signal);
      this.#check();
    }
    if (this.#canContinue && (length > LONG_BODY || !this.#hold(length)))
      return this.#found({ rest: source });
    if (length > LARGEST_BODY) {
      source.destroy();
      throw new TooLargeError();
    }
    if (length > SMALL_BODY && !this.#canContinue) {
      this.#free = await this.#memory.whole.take(length, signal);
      // The connection was lost meanwhile.
      if (source.destroyed) {
        this.#free();
        throw Object.assign(new Error('The connection was lost.'), { code: 'ECONNRESET' });
      }
    }
    try {
      return await new Promise<Body>((resolve, reject) => this.#listen(signal, resolve, reject));
    } catch (error) {
      source.destroy();
      this.#free?.();
      throw error;
    } finally {
      this.#isOver = true;
      this.#stopTimers();
      source.removeAllListeners('data');
    }
  }

  #listen(signal: AbortSignal, resolve: (body: Body) => void, reject: (error: Error) => void): void {
    const source = this.#source;
    /** The response does not end, or is large. */
    const cut = () => {
      if (this.#check()) return resolve(this.#found({ rest: source.pause() }));
      resolve(this.#found({ isCut: true }));
      source.destroy();
    };
    source.on('data', (chunk: Buffer) => {
      this.#body.push(chunk);
      this.#size += chunk.length;
      this.#silent?.refresh();
      if (this.#canContinue) {
        if (this.#size > LONG_BODY || !this.#hold(this.#size)) cut();
      } else if (this.#size > LARGEST_BODY) reject(new TooLargeError());
      else if (this.#size > SMALL_BODY && !this.#free) this.#waitForRoom(signal, cut).catch(reject);
    });
    source.once('end', () => resolve(this.#found()));
    // The page that reads the rest receives its error.
    source.once('error', (error) =>
      this.#canContinue && !signal.aborted ? resolve(this.#found({ rest: source })) : reject(error),
    );
    this.#startTimers(cut);
  }

  async #waitForRoom(signal: AbortSignal, cut: () => void): Promise<void> {
    this.#source.pause();
    this.#stopTimers();
    this.#free = await this.#memory.whole.take(LARGEST_BODY, signal);
    // The connection was lost meanwhile.
    if (this.#isOver) return this.#free();
    this.#startTimers(cut);
    this.#source.resume();
  }

  /** Whether the page can read the rest. On a busy machine, it is known some time after the response has come. */
  #check(): boolean {
    if (this.#canContinue || !this.#how.canContinue()) return this.#canContinue;
    const freeWhole = this.#free;
    this.#free = undefined;
    this.#canContinue = this.#hold(this.#size);
    if (this.#canContinue) freeWhole?.();
    else this.#free = freeWhole;
    return this.#canContinue;
  }

  /** Takes memory for a beginning of this size in bytes, if there is enough. */
  #hold(size: number): boolean {
    if (size <= Math.max(SMALL_BODY, this.#held)) return true;
    if (!this.#memory.beginnings.tryTake(size - this.#held)) return false;
    this.#held = size;
    this.#free = () => {
      this.#memory.beginnings.give(this.#held);
      this.#held = 0;
    };
    return true;
  }

  #found(how: Pick<Partial<Body>, 'isCut' | 'rest'> = {}): Body {
    return { body: this.#body, isCut: false, ...how, free: () => this.#free?.() };
  }

  #startTimers(cut: () => void): void {
    const { silence, total, continued } = this.#memory.limits;
    this.#silent = clock.setTimeout(cut, silence);
    const cutOrWait = () => {
      if (this.#check()) cut();
      else if (!this.#how.hasLength) this.#longest = clock.setTimeout(cut, total - continued);
    };
    this.#longest = clock.setTimeout(cutOrWait, continued);
  }

  #stopTimers(): void {
    clock.clearTimeout(this.#silent);
    clock.clearTimeout(this.#longest);
  }
}
