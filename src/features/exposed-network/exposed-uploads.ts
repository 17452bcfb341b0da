import { randomUUID } from 'node:crypto';
import { raceAbort } from '../../shared/abort.js';
import { delay } from '../../shared/clock.js';
import type { EventParams } from '../../wire/message.js';
import { ShownError } from './body-reader.js';
import type { Context } from './context.js';
import type { ExposedHosts } from './exposed-hosts.js';
import { oldestOfMost } from './fetch-requests.js';
import { PageFunction, prefixOf, scriptOf, type Caller } from './page-function.js';
import { replaceUploads, type SliceMessage } from './page-uploads.js';
import { pageOf } from './targets.js';

/** The name in pages of the function through which their uploads reach this process. */
const NAME = '__exposedUpload';
const MEGABYTE = 1024 * 1024;
/**
 * Bytes of a body from which a page sends a stand-in. Over a debugging port, 256 MB of all messages may wait for this process: Chromium
 * drops others. It sends a body twice, as JSON and in base64: each byte becomes 2.3 to 7.3 characters.
 */
const MOST = 16 * MEGABYTE;
/** Bytes that are read at once. */
const SLICE = 4 * MEGABYTE;
/** Number of bodies that pages keep, or have kept. */
const MOST_KEPT = 2000;
/** A request can arrive before the message of its page: how often, and after how many ms, it is looked for. */
const LOOKS = 100;
const PAUSE = 20;
/** The message of a page that keeps a body. */
const ID = /^[\d-]{7,43}$/;
/** No page knows it before this process exposes hosts. */
const MARK = `exposed-upload-${randomUUID()} `;
const STAND_IN = new RegExp(`${MARK}([\\d-]+) (\\d{1,12});`, 'g');
const GONE = 'the page that sends the body has been closed, or can not read its file.';

/** What a body has in place of another one that is large. */
interface StandIn {
  readonly id: string;
  readonly size: number;
  /** Where it is. */
  readonly from: number;
  readonly to: number;
}

/** The script that replaces large bodies in pages and workers. */
export function uploadScript({ pattern }: ExposedHosts): string {
  const values = { pattern: pattern.source, mark: MARK, most: MOST };
  return scriptOf(replaceUploads, NAME, values);
}

/** The large bodies of requests: pages keep them, and send stand-ins, and this process reads them in slices. */
export class ExposedUploads {
  /** The function through which pages say which bodies they keep. */
  readonly function: PageFunction;
  /** Who keeps a body, by its id. */
  readonly #kept = new Map<string, Caller>();

  constructor(context: Pick<Context, 'cdp' | 'targets'>) {
    this.function = new PageFunction(NAME, context);
  }

  /** A script has called a function. Any script can say anything. */
  receive(call: EventParams<'Runtime.bindingCalled'>, sessionId = ''): void {
    const caller = this.function.callerOf(call, sessionId);
    const { payload: id } = call;
    if (!caller || !ID.test(id) || this.#kept.has(id)) return;
    if (this.#kept.size >= MOST_KEPT)
      this.#kept.delete(oldestOfMost(this.#kept, ({ target }) => pageOf(target).targetId));
    this.#kept.set(id, caller);
  }

  /** The documents of a session, or that of one JavaScript context, were left. */
  leave(sessionId: string, contextId?: number): void {
    const prefix = prefixOf(sessionId, contextId);
    for (const [id, { place }] of this.#kept) if (`${place} `.startsWith(prefix)) this.#kept.delete(id);
  }

  /** Returns the size in bytes that a body has with what its stand-ins stand for. Undefined if it has none. */
  sizeWith(body: Buffer): number | undefined {
    if (!body.includes(MARK)) return undefined;
    return standInsOf(body).reduce((sum, { size, from, to }) => sum + size - (to - from), body.length);
  }

  /**
   * Reads what the stand-ins of a body stand for. Rejects if a page does not answer.
   *
   * @param size Of the whole, in bytes.
   */
  async read(body: Buffer, size: number, signal: AbortSignal): Promise<Buffer> {
    const whole = Buffer.allocUnsafe(size);
    let from = 0;
    let at = 0;
    for (const one of standInsOf(body)) {
      at += body.copy(whole, at, from, one.from);
      at = await this.#readInto(whole, at, one, signal);
      from = one.to;
    }
    body.copy(whole, at, from);
    return whole;
  }

  async #readInto(whole: Buffer, at: number, { id, size }: StandIn, signal: AbortSignal): Promise<number> {
    for (let from = 0; from < size; from += SLICE) {
      const to = Math.min(from + SLICE, size);
      const keeper = await this.#keeperOf(id, signal);
      // A page can leave it without an answer.
      const told = this.function.tell(keeper, { id, from, to } satisfies SliceMessage);
      const slice = await raceAbort(told, signal);
      const length = typeof slice === 'string' ? whole.write(slice, at + from, to - from, 'base64') : 0;
      if (length !== to - from) throw new ShownError(GONE);
    }
    return at + size;
  }

  async #keeperOf(id: string, signal: AbortSignal): Promise<Caller> {
    for (let looks = LOOKS; looks > 0; looks--) {
      const keeper = this.#kept.get(id);
      if (keeper) return keeper;
      await delay(PAUSE, signal);
    }
    throw new ShownError(GONE);
  }
}

function standInsOf(body: Buffer): StandIn[] {
  return [...body.toString('latin1').matchAll(STAND_IN)].map(({ 0: { length }, 1: id, 2: size, index }) => {
    return { id: id!, size: Number(size), from: index, to: index + length };
  });
}
