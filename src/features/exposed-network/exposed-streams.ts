import { randomUUID } from 'node:crypto';
import { finished, PassThrough, pipeline, type Readable } from 'node:stream';
import { onAbort } from '../../shared/abort.js';
import { clock } from '../../shared/clock.js';
import { LONG_BODY, type ExposedResponse, type Unread } from './body-reader.js';
import type { Context } from './context.js';
import { oldestOfMost, type Channel, type ChannelKind } from './bridge.js';
import { FetchRequests, senderOf, type TrackedRequest } from './fetch-requests.js';
import type { PartMessage } from './page-fetch.js';
import { valueOf } from './response-kinds.js';
import { originOf, type AttachedTarget } from './targets.js';

/** The header that names the stream of a response. A page does not see it. */
const HEADER = 'x-exposed-stream';
/** Bytes of one part, and those that wait in the page until it reads them. */
const PART = 1024 * 1024;
const MOST_WAITING = 4 * PART;
/** Bytes of a body of unknown length that clients of the browser can read. One that names its length can have those of a whole body. */
const MOST_KEPT = 4 * PART;
const NOT_KEPT =
  'The page has read the response in parts (exposeNetwork), and it has more than 4 MB, or 16 MB if it names its length: it was not kept.';
/** Milliseconds in which a page must begin to read. */
const LONGEST_ABSENCE = 60_000;
/** As for the connections to one host. */
const MOST_OPEN = 256;
interface Stream {
  /** That has sent the request. */
  readonly page: string;
  readonly parts: AsyncGenerator<Buffer, void>;
  /** Closes the connection to the server, and frees the memory. */
  close(): void;
  /** Through which the page reads it. Undefined until it does. */
  reader?: Channel;
  /** A part is on its way to the page. */
  isDelivering?: boolean;
  /** The page wants another part. */
  isWanted?: boolean;
}

/** The request of a response that the page reads in parts. */
interface RequestFacts {
  readonly page: string;
  /** In the domain Network. */
  readonly networkId: string | undefined;
  readonly isCors: boolean;
}

/** What the script in pages needs to know. */
export const FETCH_VALUES = { header: HEADER, waiting: MOST_WAITING };

/**
 * The responses that a page reads in parts with `fetch`: those that are large, or do not end soon. A script replaces `fetch` there, and
 * asks for each part when the page reads it, so a page that is slow makes its server slow.
 */
export class ExposedStreams implements ChannelKind {
  /** As many as streams. */
  readonly most = MOST_OPEN;
  /** Which requests `fetch` has sent. */
  readonly requests = new FetchRequests();
  readonly #context: Pick<Context, 'clients' | 'signal'>;
  readonly #open = new Map<string, Stream>();

  constructor(context: Pick<Context, 'clients' | 'signal'>) {
    this.#context = context;
  }

  /**
   * A script has sent a request.
   *
   * @param networkId Its id in the domain Network, which it keeps when it is redirected.
   */
  track(target: AttachedTarget, frameId: string, url: string, networkId?: string): TrackedRequest {
    return this.requests.track(() => senderOf(target, originOf(target, frameId)), url, networkId);
  }

  /** Returns the response that the page receives first: it has no body, and names the stream. The stream frees the memory. */
  begin(response: Unread, { page, networkId, isCors }: RequestFacts): ExposedResponse {
    const id = randomUUID();
    const { body: beginning, rest, headers, free } = response;
    if (this.#open.size >= MOST_OPEN) this.#close(oldestOfMost(this.#open, (one) => one.page));
    const length = Number(valueOf('content-length', headers));
    const kept = new KeptBody(rest, length <= LONG_BODY ? LONG_BODY : MOST_KEPT);
    this.#context.clients.keepBody(networkId, kept);
    const giveUp = () => stream.reader === undefined && this.#close(id);
    const timer = clock.setTimeout(giveUp, LONGEST_ABSENCE).unref();
    const stopListening = onAbort(this.#context.signal, () => this.#close(id));
    finished(rest, stopListening);
    const close = () => {
      clock.clearTimeout(timer);
      stopListening();
      rest.destroy();
      free();
    };
    const stream: Stream = { page, parts: partsOf({ beginning, rest, free }, kept), close };
    this.#open.set(id, stream);
    const shown = isCors ? [`access-control-expose-headers: ${HEADER}`] : [];
    return { ...response, headers: [...headers, `${HEADER}: ${id}`, ...shown], body: [], free: () => {} };
  }

  #close(id: string): void {
    const stream = this.#open.get(id);
    this.#open.delete(id);
    stream?.close();
    stream?.reader?.end();
  }

  /** Only the first reader can read a stream: its id is a secret that the response contains. A server can name any. */
  opened(channel: Channel): void {
    const stream = this.#open.get(channel.id);
    if (stream && !stream.reader) stream.reader = channel;
    else channel.refuse({ isError: true } satisfies Omit<PartMessage, 'id'>);
  }

  /** Sends the next part when the page wants it and has received the one before: a script can ask for any number at once. */
  said(channel: Channel): void {
    const stream = this.#open.get(channel.id);
    if (!stream) return;
    stream.isWanted = true;
    if (!stream.isDelivering) void this.#deliver(channel, stream);
  }

  ended({ id }: Channel): void {
    this.#close(id);
  }

  async #deliver(channel: Channel, stream: Stream): Promise<void> {
    stream.isDelivering = true;
    while (stream.isWanted && channel.isOpen) {
      stream.isWanted = false;
      const part = await nextOf(stream);
      if (part.bytes === undefined) this.#close(channel.id);
      await channel.tell(part, part.bytes?.length);
    }
    stream.isDelivering = false;
  }
}

/** Whether a header is one of those that only this process adds. */
export function isOwnHeader(header: string): boolean {
  return header.toLowerCase().startsWith(`${HEADER}:`);
}

/** Waits for the next part of a stream. Never rejects. */
async function nextOf({ parts }: Stream): Promise<Omit<PartMessage, 'id'>> {
  try {
    const { value, done } = await parts.next();
    return done ? { isEnd: true } : { bytes: value.toString('base64') };
  } catch {
    return { isError: true };
  }
}

/** Reads a body in parts of at most one size, each when it is asked for. */
async function* partsOf(
  { beginning, rest, free }: { beginning: Buffer[]; rest: Readable; free: () => void },
  kept: KeptBody,
): AsyncGenerator<Buffer, void> {
  // What arrives while the page handles a part becomes the next one.
  const buffered = new PassThrough({ readableHighWaterMark: PART });
  pipeline(rest, buffered, () => {});
  for (let bytes = beginning.shift(); bytes; bytes = beginning.shift()) yield* slicesOf(bytes, kept);
  free();
  for await (const bytes of buffered) yield* slicesOf(bytes as Buffer, kept);
}

function* slicesOf(bytes: Buffer, kept: KeptBody): Iterable<Buffer> {
  kept.add(bytes);
  for (let at = 0; at < bytes.length; at += PART) yield bytes.subarray(at, at + PART);
}

/** What clients of the browser can read of a body, after its end. */
class KeptBody {
  readonly #ended: Promise<void>;
  readonly #most: number;
  #parts: Buffer[] = [];
  #size = 0;

  /** @param most Size in bytes of a body that is kept. */
  constructor(body: Readable, most: number) {
    this.#most = most;
    this.#ended = body.closed ? Promise.resolve() : new Promise((resolve) => body.once('close', resolve));
  }

  add(bytes: Buffer): void {
    this.#size += bytes.length;
    if (this.#size <= this.#most) this.#parts.push(bytes);
    else this.#parts = [];
  }

  /** Nobody can read it any longer. */
  drop(): void {
    this.#size = Number.POSITIVE_INFINITY;
    this.#parts = [];
  }

  /** Resolves after the end. */
  async whole(): Promise<Buffer> {
    await this.#ended;
    if (this.#size > this.#most) throw new Error(NOT_KEPT);
    return Buffer.concat(this.#parts);
  }
}
