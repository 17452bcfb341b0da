import { randomUUID } from 'node:crypto';
import { finished, PassThrough, pipeline, type Readable } from 'node:stream';
import type { EventParams } from '../../wire/message.js';
import { onAbort } from '../../shared/abort.js';
import { clock } from '../../shared/clock.js';
import { LONG_BODY, type ExposedResponse, type Unread } from './body-reader.js';
import type { Context } from './context.js';
import type { ExposedHosts } from './exposed-hosts.js';
import { FetchRequests, oldestOfMost, type TrackedRequest } from './fetch-requests.js';
import { replaceFetch, type PartMessage } from './page-fetch.js';
import { PageFunction, prefixOf, scriptOf, type Caller } from './page-function.js';
import { valueOf } from './response-kinds.js';
import { originOf, pageOf, type AttachedTarget } from './targets.js';

/** The name in pages of the function through which their `fetch` reaches this process. */
const NAME = '__exposedFetch';
/** The header that names the stream of a response. A page does not see it. */
const HEADER = 'x-exposed-stream';
/** Bytes of one part, and those that wait in the page until it reads them. */
const PART = 1024 * 1024;
const MOST_WAITING = 4 * PART;
/** Bytes of a body of unknown length that clients of the browser can read. One that names its length can have those of a whole body. */
const MOST_KEPT = 4 * PART;
const NOT_KEPT =
  'The page has read the response in parts (exposeNetwork), and it has more than 4 MB, or 16 MB if it names its length: it was not kept.';
/** Characters of parts, which the browser compiles as code and so keeps, until a page or a worker collects its garbage. */
const MOST_UNCOLLECTED = 64 * PART;
/** Milliseconds in which a page must begin to read. */
const LONGEST_ABSENCE = 60_000;
/** As for the connections to one host. */
const MOST_OPEN = 256;
/** Length of a message of a page in characters: its URL is the longest part. */
const LONGEST_MESSAGE = 16 * 1024;
/** A `FetchMessage` with its id, and the URL of a request. */
const MESSAGE = /^(begin|over|pull|cancel) (\S+) (.*)$/s;

interface Stream {
  /** That has sent the request. */
  readonly page: string;
  readonly parts: AsyncGenerator<Buffer, void>;
  /** Closes the connection to the server, and frees the memory. */
  close(): void;
  /** Where the page reads it: by session and JavaScript context. Undefined until it does. */
  reader?: string;
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

/** The script that replaces `fetch` in pages and workers. */
export function fetchScript({ pattern }: ExposedHosts): string {
  return scriptOf(replaceFetch, NAME, { pattern: pattern.source, header: HEADER, waiting: MOST_WAITING });
}

/**
 * The responses that a page reads in parts with `fetch`: those that are large, or do not end soon. A script replaces `fetch` there, and
 * asks for each part when the page reads it, so a page that is slow makes its server slow.
 */
export class ExposedStreams {
  readonly #context: Context;
  /** The function through which `fetch` of pages reaches this process. */
  readonly function: PageFunction;
  readonly #open = new Map<string, Stream>();
  readonly #requests = new FetchRequests();
  /** By session: characters of parts since garbage was collected. */
  readonly #delivered = new Map<string, number>();

  constructor(context: Context) {
    this.#context = context;
    this.function = new PageFunction(NAME, context);
  }

  /**
   * A script has sent a request.
   *
   * @param networkId Its id in the domain Network, which it keeps when it is redirected.
   */
  track(target: AttachedTarget, frameId: string, url: string, networkId?: string): TrackedRequest {
    return this.#requests.track(() => senderOf(target, originOf(target, frameId)), url, networkId);
  }

  /** A script has called a function. Any script can say anything. */
  receive(call: EventParams<'Runtime.bindingCalled'>, sessionId = ''): void {
    const caller = this.function.callerOf(call, sessionId);
    if (!caller || call.payload.length > LONGEST_MESSAGE) return;
    const [, what = '', id = '', url = ''] = MESSAGE.exec(call.payload) ?? [];
    const { target, place, contextId } = caller;
    const key = `${place} ${id}`;
    if (what === 'begin') {
      const sender = senderOf(target, target.places.get(contextId)?.origin);
      if (sender === undefined) return;
      this.#requests.announce(key, { page: pageOf(target).targetId, sender, url });
    } else if (what === 'over') this.#requests.forget(key);
    else if (what !== '') this.#read(id, caller, what);
  }

  /** The documents of a session, or that of one JavaScript context, were left. */
  leave(sessionId: string, contextId?: number): void {
    const prefix = prefixOf(sessionId, contextId);
    this.#requests.leave(prefix);
    for (const [id, { reader }] of this.#open)
      if (reader !== undefined && `${reader} `.startsWith(prefix)) this.#close(id);
    if (contextId === undefined) this.#delivered.delete(sessionId);
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
    this.#open.get(id)?.close();
    this.#open.delete(id);
  }

  #read(id: string, caller: Caller, what: string): void {
    const stream = this.#open.get(id);
    // Only the first reader can read it: its id is a secret that the response contains. A server can name any.
    if (!stream || (stream.reader ??= caller.place) !== caller.place) {
      if (what === 'pull') void this.function.refuse(caller, { id, isError: true } satisfies PartMessage);
    } else if (what === 'pull') void this.#deliver(id, stream, caller);
    else this.#close(id);
  }

  /** Sends the next part when the page wants it and has received the one before: a script can ask for any number at once. */
  async #deliver(id: string, stream: Stream, caller: Caller): Promise<void> {
    stream.isWanted = true;
    if (stream.isDelivering) return;
    stream.isDelivering = true;
    while (stream.isWanted && this.#open.has(id)) {
      stream.isWanted = false;
      const part = await nextOf(stream);
      if (part.bytes === undefined) this.#close(id);
      const told = this.function.tell(caller, { id, ...part } satisfies PartMessage);
      this.#collectGarbage(caller.target, part.bytes?.length ?? 0);
      await told;
    }
    stream.isDelivering = false;
  }

  /** The browser keeps what it was told until the page collects its garbage. @param size Of the last part, in characters. */
  #collectGarbage({ sessionId }: AttachedTarget, size: number): void {
    const delivered = (this.#delivered.get(sessionId) ?? 0) + size;
    this.#delivered.set(sessionId, delivered % MOST_UNCOLLECTED);
    if (delivered < MOST_UNCOLLECTED) return;
    this.#context.cdp.send('HeapProfiler.collectGarbage', {}, sessionId).catch(() => {});
  }
}

/** Whether a header is one of those that only this process adds. */
export function isOwnHeader(header: string): boolean {
  return header.toLowerCase().startsWith(`${HEADER}:`);
}

/** Who sends requests: a page, and the origin of one of its documents or workers. Undefined if that is not known. */
function senderOf(target: AttachedTarget, origin: string | undefined): string | undefined {
  return origin === undefined ? undefined : `${pageOf(target).targetId} ${origin}`;
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
