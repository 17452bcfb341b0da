import { randomUUID } from 'node:crypto';
import { PassThrough, type Readable, finished, pipeline } from 'node:stream';
import { onAbort } from '../../shared/abort.js';
import { clock } from '../../shared/clock.js';
import type { Session } from '../../wire/layer.js';
import { type ExposedResponse, LONG_BODY, type Unread } from './response-bodies.js';
import type { Context } from './context.js';
import { type Channel, type ChannelKind, oldestOfMost } from './bridge.js';
import type { PartMessage } from './page-fetch.js';
import { valueOf } from './exposed-request.js';
import { pageOf } from './targets.js';

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
/** Most streams that are open: as many as connections to one host. */
const MOST_OPEN = 256;
interface Stream {
  /** The page that has sent the request. */
  readonly page: string;
  readonly parts: AsyncGenerator<Buffer, void>;
  /** Closes the connection to the server, and frees the memory. */
  close(): void;
  /** The channel through which the page reads it. Undefined until it does. */
  reader?: Channel;
  /** A part is on its way to the page. */
  isDelivering?: boolean;
  /** The page wants another part. */
  isWanted?: boolean;
}

/** The request of a response that the page reads in parts. */
interface RequestFacts {
  readonly page: string;
  /** The id of the request in the domain Network. */
  readonly networkId: string | undefined;
  readonly isCors: boolean;
}

/** The settings of the script in pages. */
export const FETCH_VALUES = { header: HEADER, waiting: MOST_WAITING };

/**
 * The responses that a page reads in parts with `fetch`: those that are large, or do not end soon. A script replaces `fetch` there, and
 * asks for each part when the page reads it, so a page that is slow makes its server slow.
 */
export class ExposedStreams implements ChannelKind {
  /** Each is that of a stream, and these are bounded. */
  readonly most = Number.POSITIVE_INFINITY;
  readonly requests = new FetchRequests();
  readonly #context: Pick<Context, 'clients' | 'targets' | 'signal'>;
  readonly #open = new Map<string, Stream>();

  constructor(context: Pick<Context, 'clients' | 'targets' | 'signal'>) {
    this.#context = context;
  }

  /**
   * A script has sent a request.
   *
   * @param networkId Its id in the domain Network, which it keeps when it is redirected.
   */
  track(session: Session, frameId: string, url: string, networkId?: string): TrackedRequest {
    const { targets } = this.#context;
    return this.requests.track(
      () => senderOf(session, targets.knownOriginOf(session, frameId)),
      url,
      networkId,
    );
  }

  /** Returns the response that the page receives first: it has no body, and names the stream. The stream frees the memory. */
  begin(response: Unread, { page, networkId, isCors }: RequestFacts): ExposedResponse {
    const id = randomUUID();
    const { body: beginning, rest, headers, free } = response;
    if (this.#open.size >= MOST_OPEN) this.#close(oldestOfMost(this.#open, (one) => one.page));
    const length = Number(valueOf('content-length', headers));
    const kept = new KeptBody(rest, length <= LONG_BODY ? LONG_BODY : MOST_KEPT);
    this.#context.clients.keepBody(networkId, kept);
    const closeUnread = () => stream.reader === undefined && this.#close(id);
    const timer = clock.setTimeout(closeUnread, LONGEST_ABSENCE).unref();
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
    else channel.end({ isError: true } satisfies Omit<PartMessage, 'id'>);
  }

  /** Sends the next part when the page wants it and has received the one before: a script can ask for any number at once. */
  onMessage(channel: Channel): void {
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
    while (stream.isWanted && channel.isOpen()) {
      stream.isWanted = false;
      const part = await nextOf(stream);
      if (part.bytes === undefined) this.#close(channel.id);
      await channel.send(part, part.bytes?.length);
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

/** Number of requests of all pages that may be announced and have no response. */
const MOST_ANNOUNCED = 2000;
/** Number of requests whose first URLs are kept, and the length of one in characters. */
const MOST_URLS = 1000;
const LONGEST_URL = 16 * 1024;

/** A request that a script of a page has sent. */
export interface TrackedRequest {
  /** Whether the page can read its response in parts. */
  isOfFetch(): boolean;
  /** It has its response, or has failed. */
  end(): void;
}

interface Announced {
  /** The page, and the origin of the document or worker: others of the page do not speak for it. */
  readonly sender: string;
  readonly url: string;
}

interface Sent {
  /** Undefined if it is not known yet. */
  readonly sender: () => string | undefined;
  readonly url: string;
}

/**
 * Which requests `fetch` has sent. CDP does not say it, but the replaced function announces its requests: a page can read a response in
 * parts if `fetch` has sent all requests of its sender to this URL.
 */
export class FetchRequests implements ChannelKind {
  readonly most = MOST_ANNOUNCED;
  readonly #announced = new Map<Channel, Announced>();
  readonly #sent = new Set<Sent>();
  /** The first URLs of requests, which can be redirected, by their ids in the domain Network. */
  readonly #firstUrls = new Map<string, string>();

  /** A script announces a request. Any script can announce anything. */
  opened(channel: Channel, url: string): void {
    const sender = senderOf(channel.session, channel.place?.origin);
    if (sender === undefined) channel.end();
    else this.#announced.set(channel, { sender, url });
  }

  /** The request has its response. */
  ended(channel: Channel): void {
    this.#announced.delete(channel);
  }

  /** Counts a request of a script. */
  track(sender: Sent['sender'], latestUrl: string, networkId: string | undefined): TrackedRequest {
    const url = this.#firstUrlOf(latestUrl, networkId);
    const request = { sender, url };
    this.#sent.add(request);
    return {
      isOfFetch: () => {
        const own = sender();
        if (own === undefined) return false;
        const sent = count(this.#sent, (one) => one.url === url && one.sender() === own);
        const announced = count(this.#announced.values(), (one) => one.url === url && one.sender === own);
        return announced >= Math.max(1, sent);
      },
      end: () => this.#sent.delete(request),
    };
  }

  /** The URL of a request before its redirects. */
  #firstUrlOf(url: string, networkId: string | undefined): string {
    if (networkId === undefined || url.length > LONGEST_URL) return url;
    const known = this.#firstUrls.get(networkId);
    if (known !== undefined) return known;
    if (this.#firstUrls.size >= MOST_URLS) {
      const [oldest] = this.#firstUrls.keys();
      this.#firstUrls.delete(oldest!);
    }
    this.#firstUrls.set(networkId, url);
    return url;
  }
}

/** Who sends requests: a page, and the origin of one of its documents or workers. Undefined if that is not known. */
export function senderOf(session: Session, origin: string | undefined): string | undefined {
  return origin === undefined ? undefined : `${pageOf(session).target.id} ${origin}`;
}

function count<Value>(values: Iterable<Value>, isCounted: (value: Value) => boolean): number {
  return [...values].filter(isCounted).length;
}
