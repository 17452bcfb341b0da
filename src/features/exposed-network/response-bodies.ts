import type { Readable } from 'node:stream';
import { clock, delay } from '../../shared/clock.js';
import { raceAbort } from '../../shared/abort.js';
import { valueOf, type Received, type ResponseHead } from './exposed-request.js';

/** The memory for large bodies, in bytes: who needs more than is free waits, so that its server waits, too. Serves in order. */
export class ByteBudget {
  #free: number;
  readonly #queue: { readonly bytes: number; readonly enter: () => void }[] = [];

  constructor(bytes: number) {
    this.#free = bytes;
  }

  /** Waits for a number of bytes, at most those of the whole budget. */
  async take(bytes: number, signal: AbortSignal): Promise<void> {
    const entered = new Promise<void>((resolve) => this.#queue.push({ bytes, enter: resolve }));
    this.#admit();
    // After an abort, the bytes are taken for a moment when they leave the queue.
    await raceAbort(entered, signal, () => this.give(bytes));
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

/** What one body occupies of a budget. */
export class Share {
  #budget: ByteBudget | undefined;
  #bytes = 0;

  get isTaken(): boolean {
    return this.#bytes > 0;
  }

  async take(budget: ByteBudget, bytes: number, signal: AbortSignal): Promise<void> {
    await budget.take(bytes, signal);
    this.#budget = budget;
    this.#bytes = bytes;
  }

  /** Takes the bytes that are missing to a number, and frees those of another budget. Returns false if they are not free. */
  tryGrow(budget: ByteBudget, bytes: number): boolean {
    const held = budget === this.#budget ? this.#bytes : 0;
    const missing = Math.max(0, bytes - held);
    if (!budget.tryTake(missing)) return false;
    if (budget !== this.#budget) this.free();
    this.#budget = budget;
    this.#bytes = held + missing;
    return true;
  }

  free(): void {
    this.#budget?.give(this.#bytes);
    this.#budget = undefined;
    this.#bytes = 0;
  }
}

/** When a response that does not end is cut, in ms. CDP has no command that delivers a response in parts. */
export interface StreamLimits {
  /** Time without a byte. */
  readonly silence: number;
  /** Time from the beginning of a response that does not name its length. */
  readonly total: number;
  /** Time from the beginning of one that can continue. */
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
  readonly whole = new ByteBudget(2 * LARGEST_BODY);
  /** The memory for the beginnings of those whose pages can read the rest, until they do. */
  readonly beginnings = new ByteBudget(LARGEST_BODY);

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

interface ReadBodyOptions extends Pick<Received, 'length' | 'hasLength'> {
  canContinue(this: void): boolean;
}

/** Reads one body, when its server sends it and there is memory for it. */
class BodyReader {
  readonly #stream: Readable;
  readonly #bodies: Bodies;
  readonly #how: ReadBodyOptions;
  readonly #share = new Share();
  readonly #body: Buffer[] = [];
  #size = 0;
  /** The page can read the rest, and there is memory for the beginning until it does. */
  #canContinue = false;

  constructor(stream: Readable, bodies: Bodies, how: ReadBodyOptions) {
    this.#stream = stream;
    this.#bodies = bodies;
    this.#how = how;
  }

  async read(signal: AbortSignal): Promise<Body> {
    const { length = 0 } = this.#how;
    try {
      if (!this.#check() && length > LARGEST_BODY) {
        await delay(this.#bodies.limits.continued, signal);
        this.#check();
      }
      if (!this.#fits(length)) return this.#found({ rest: this.#stream });
      if (length > LARGEST_BODY) throw new TooLargeError();
      return await this.#read(signal);
    } catch (error) {
      // The page that reads the rest receives its error.
      if (this.#canContinue && !signal.aborted) return this.#found({ rest: this.#stream });
      this.#stream.destroy();
      this.#share.free();
      throw error;
    }
  }

  async #read(signal: AbortSignal): Promise<Body> {
    const { length = 0 } = this.#how;
    const stream = this.#stream;
    const times = { started: clock.now(), latest: clock.now() };
    while (!stream.readableEnded) {
      if (!this.#canContinue && !this.#share.isTaken && Math.max(length, this.#size) > SMALL_BODY) {
        await this.#share.take(this.#bodies.whole, length || LARGEST_BODY, signal);
        times.started = times.latest = clock.now();
      }
      if (stream.destroyed) throw stream.errored ?? Object.assign(new Error('lost'), { code: 'ECONNRESET' });
      const chunk = stream.read() as Buffer | null;
      if (chunk) {
        this.#body.push(chunk);
        this.#size += chunk.length;
        times.latest = clock.now();
        if (!this.#fits(this.#size)) return this.#found({ rest: stream });
        if (this.#size > LARGEST_BODY) throw new TooLargeError();
      } else if (!(await this.#wait(times, signal))) {
        if (this.#check()) return this.#found({ rest: stream });
        stream.destroy();
        return this.#found({ isCut: true });
      }
    }
    return this.#found();
  }

  /** Waits until the stream has bytes or has ended. Resolves to false if it takes too long. */
  async #wait(
    { started, latest }: { started: number; latest: number },
    signal: AbortSignal,
  ): Promise<boolean> {
    const { silence, total, continued } = this.#bodies.limits;
    const end = Math.min(latest + silence, this.#how.hasLength ? Infinity : started + total);
    const now = clock.now();
    if (now >= end || (now >= started + continued && this.#check())) return false;
    const next = now < started + continued ? Math.min(end, started + continued) : end;
    await delay(next - now, signal, (wake) => {
      const names = ['readable', 'end', 'close'];
      for (const name of names) this.#stream.once(name, wake);
      return () => names.forEach((name) => this.#stream.off(name, wake));
    });
    return true;
  }

  /** Whether the page can read the rest. On a busy machine, it is known some time after the response has come. */
  #check(): boolean {
    return (this.#canContinue ||= this.#how.canContinue() && this.#hold(this.#size));
  }

  /** False for a beginning of this size in bytes if the page can read the rest, and the browser or the memory can hold no more. */
  #fits(size: number): boolean {
    return !this.#canContinue || (size <= LONG_BODY && this.#hold(size));
  }

  /** Takes memory for a beginning of this size in bytes, if there is enough. */
  #hold(size: number): boolean {
    return this.#share.tryGrow(this.#bodies.beginnings, size > SMALL_BODY ? size : 0);
  }

  #found(how: Pick<Partial<Body>, 'isCut' | 'rest'> = {}): Body {
    return { body: this.#body, isCut: false, ...how, free: () => this.#share.free() };
  }
}

export function isStreamOfEvents({ status, headers }: ResponseHead): boolean {
  return status === 200 && /^text\/event-stream\b/i.test(valueOf('content-type', headers) ?? '');
}

/** Size in bytes from which a file is not sent to the browser. */
const LARGE_FILE = 8 * 1024 * 1024;
/** Types that no browser shows. */
const FILES =
  /^application\/(octet-stream|zip|gzip|x-(tar|gzip|zip-compressed|7z-compressed|rar-compressed|bzip2?|xz))\b/i;

/** Whether a browser downloads a response, which is large or has an unknown length. */
export function isFile(
  { status, headers, length = Number.POSITIVE_INFINITY }: Received,
  isDownload: boolean,
): boolean {
  if (status !== 200 || length < LARGE_FILE) return false;
  if (isDownload) return true;
  const disposition = valueOf('content-disposition', headers) ?? '';
  return /^attachment\b/i.test(disposition) || FILES.test(valueOf('content-type', headers) ?? '');
}

/** Size in bytes of a range that a video or a sound receives, and ms until it does: it requests the next one by itself. */
const LONGEST_RANGE = 8 * 1024 * 1024;
const LONGEST_WAIT = 1000;
const RANGE = /^bytes (\d+)-\d+(\/.*)$/i;

export function isRange({ status, headers }: ResponseHead): boolean {
  return status === 206 && RANGE.test(valueOf('content-range', headers) ?? '');
}

/** Makes of a long range, or of one that arrives slowly, a shorter one. */
export async function beginningOf(response: Unread, signal: AbortSignal): Promise<ExposedResponse> {
  const { headers, rest } = response;
  const body: Buffer[] = [];
  const started = clock.now();
  let size = 0;
  for await (const chunk of rest as AsyncIterable<Buffer>) {
    signal.throwIfAborted();
    body.push(chunk.subarray(0, LONGEST_RANGE - size));
    size += body.at(-1)!.length;
    if (size === LONGEST_RANGE || clock.now() - started > LONGEST_WAIT) break;
  }
  const [, from = '', total = ''] = RANGE.exec(valueOf('content-range', headers)!)!;
  const kept = headers.filter((one) => !/^content-(length|range):/i.test(one));
  const range = `content-range: bytes ${from}-${Number(from) + size - 1}${total}`;
  return { ...response, headers: [...kept, `content-length: ${size}`, range], body };
}
