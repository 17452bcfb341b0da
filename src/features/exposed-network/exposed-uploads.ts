import { randomUUID } from 'node:crypto';
import { raceAbort } from '../../shared/abort.js';
import { delay } from '../../shared/clock.js';
import { ShownError } from './body-reader.js';
import type { Channel, ChannelKind } from './bridge.js';
import type { SliceMessage } from './page-uploads.js';

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

/** What the script in pages needs to know. */
export const UPLOAD_VALUES = { mark: MARK, most: MOST };

/** The large bodies of requests: pages keep them, and send stand-ins, and this process reads them in slices. */
export class ExposedUploads implements ChannelKind {
  readonly most = MOST_KEPT;
  /** Who keeps a body, by its id. */
  readonly #kept = new Map<string, Channel>();

  /** A page keeps a body. */
  opened(channel: Channel): void {
    // Its id is a secret of another page.
    if (this.#kept.has(channel.id)) channel.end();
    else this.#kept.set(channel.id, channel);
  }

  ended({ id }: Channel): void {
    this.#kept.delete(id);
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
      const told = keeper.tell({ from, to } satisfies Omit<SliceMessage, 'id'>);
      const slice = await raceAbort(told, signal);
      const length = typeof slice === 'string' ? whole.write(slice, at + from, to - from, 'base64') : 0;
      if (length !== to - from) throw new ShownError(GONE);
    }
    return at + size;
  }

  async #keeperOf(id: string, signal: AbortSignal): Promise<Channel> {
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
