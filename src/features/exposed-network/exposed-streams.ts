import { randomUUID } from 'node:crypto';
import { finished, PassThrough, pipeline, type Readable } from 'node:stream';
import type { CdpClient } from '../../connect/cdp-client.js';
import type { EventParams } from '../../connect/message.js';
import { onAbort } from '../../shared/abort.js';
import { clock } from '../../shared/clock.js';
import type { BrowserClients } from './browser-clients.js';
import { LONG_BODY } from './body-reader.js';
import type { ExposedResponse } from './exposed-request.js';
import { FetchRequests, oldestOfMost, type TrackedRequest } from './fetch-requests.js';
import { replaceFetch, type PartMessage } from './page-fetch.js';
import { valueOf } from './response-kinds.js';
import { originOf, pageOf, type AttachedTarget, type Targets } from './targets.js';

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

/** Where a page reads a stream. */
interface Reader {
  readonly place: string;
  readonly sessionId: string;
  readonly contextId: number;
}

/** The request of a response that the page reads in parts. */
interface RequestFacts {
  readonly page: string;
  /** In the domain Network. */
  readonly networkId: string | undefined;
  readonly isCors: boolean;
}

type Unread = ExposedResponse & { readonly rest: Readable };

export interface StreamPlan {
  /** Source of the regular expression of the exposed URLs. */
  readonly pattern: string;
  readonly cdp: () => CdpClient;
  readonly targets: () => Targets;
  readonly clients: BrowserClients;
  readonly signal: AbortSignal;
}

/**
 * The responses that a page reads in parts with `fetch`: those that are large, or do not end soon. A script replaces `fetch` there, and
 * asks for each part when the page reads it, so a page that is slow makes its server slow.
 */
export class ExposedStreams {
  readonly #plan: StreamPlan;
  readonly #open = new Map<string, Stream>();
  readonly #requests = new FetchRequests();
  /** By session: characters of parts since garbage was collected. */
  readonly #delivered = new Map<string, number>();
  /** Parts that say that there is no such stream, and have not reached their pages. */
  #refusals = 0;

  constructor(plan: StreamPlan) {
    this.#plan = plan;
  }

  /** The script that replaces the function. */
  get script(): string {
    const values = [this.#plan.pattern, NAME, HEADER, MOST_WAITING].map((one) => JSON.stringify(one));
    return `(${String(replaceFetch)})(${values.join()});`;
  }

  /** Prepares a page or a worker, before the script runs. */
  async prepare({ sessionId }: AttachedTarget): Promise<void> {
    await this.#plan.cdp().send('Runtime.addBinding', { name: NAME }, sessionId);
  }

  /** A script has sent a request. */
  track(target: AttachedTarget | undefined, frameId: string, url: string): TrackedRequest {
    if (!target) return { isOfFetch: () => false, end: () => {} };
    return this.#requests.track(() => senderOf(target, originOf(target, frameId)), url);
  }

  /** A script has called the function. Any script can say anything. */
  receive({ name, payload, executionContextId }: EventParams<'Runtime.bindingCalled'>, sessionId = ''): void {
    const target = this.#plan.targets().of(sessionId);
    if (name !== NAME || payload.length > LONGEST_MESSAGE || !target) return;
    const [, what = '', id = '', url = ''] = MESSAGE.exec(payload) ?? [];
    const place = `${sessionId} ${executionContextId}`;
    const key = `${place} ${id}`;
    if (what === 'begin') {
      const sender = senderOf(target, target.places.get(executionContextId)?.origin);
      if (sender === undefined) return;
      this.#requests.announce(key, { page: pageOf(target).targetId, sender, url });
    } else if (what === 'over') this.#requests.forget(key);
    else if (what !== '') this.#read(id, { place, sessionId, contextId: executionContextId }, what);
  }

  /** The documents of a target, or one of them, were left. */
  leave(sessionId: string, contextId?: number): void {
    const prefix = `${[sessionId, ...(contextId === undefined ? [] : [contextId])].join(' ')} `;
    this.#requests.leave(prefix);
    for (const [id, { reader }] of this.#open)
      if (reader !== undefined && `${reader} `.startsWith(prefix)) this.#close(id);
    if (contextId === undefined) this.#delivered.delete(sessionId);
  }

  /** The connection to the browser was lost: the pages learn it when the script runs in them again. */
  lose(): void {
    for (const id of this.#open.keys()) this.#close(id);
    this.#requests.leave('');
    this.#delivered.clear();
  }

  /** Returns the response that the page receives first: it has no body, and names the stream. The stream frees the memory. */
  begin(response: Unread, { page, networkId, isCors }: RequestFacts): ExposedResponse {
    const id = randomUUID();
    const { body: beginning, rest, headers, free } = response;
    if (this.#open.size >= MOST_OPEN) this.#close(oldestOfMost(this.#open, (one) => one.page));
    const length = Number(valueOf('content-length', headers));
    const kept = new KeptBody(rest, length <= LONG_BODY ? LONG_BODY : MOST_KEPT);
    this.#plan.clients.keepBody(networkId, kept);
    const giveUp = () => stream.reader === undefined && this.#close(id);
    const timer = clock.setTimeout(giveUp, LONGEST_ABSENCE).unref();
    const stopListening = onAbort(this.#plan.signal, () => this.#close(id));
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

  #read(id: string, reader: Reader, what: string): void {
    const stream = this.#open.get(id);
    // Only the first reader can read it: its id is a secret that the response contains. A server can name any.
    if (!stream || (stream.reader ??= reader.place) !== reader.place) {
      if (what === 'pull') void this.#refuse(id, reader);
    } else if (what === 'pull') void this.#deliver(id, stream, reader);
    else this.#close(id);
  }

  /** A page can ask without an end, and not take the answers. */
  async #refuse(id: string, reader: Reader): Promise<void> {
    if (this.#refusals >= MOST_OPEN) return;
    this.#refusals++;
    await this.#tell(reader, { id, isError: true });
    this.#refusals--;
  }

  /** Sends the next part when the page wants it and has received the one before: a script can ask for any number at once. */
  async #deliver(id: string, stream: Stream, reader: Reader): Promise<void> {
    stream.isWanted = true;
    if (stream.isDelivering) return;
    stream.isDelivering = true;
    while (stream.isWanted && this.#open.has(id)) {
      stream.isWanted = false;
      const part = await nextOf(stream);
      if (part.bytes === undefined) this.#close(id);
      await this.#tell(reader, { id, ...part });
    }
    stream.isDelivering = false;
  }

  /** Resolves when the page has received the part, or can't. */
  async #tell({ sessionId, contextId }: Reader, part: PartMessage): Promise<void> {
    const call = {
      functionDeclaration: `function (part) { globalThis.${NAME}?.(part); }`,
      executionContextId: contextId,
      // Not in the code of an expression, which the browser would keep for some time.
      arguments: [{ value: part }],
    };
    const cdp = this.#plan.cdp();
    const told = cdp.send('Runtime.callFunctionOn', call, sessionId).catch(() => {});
    const delivered = (this.#delivered.get(sessionId) ?? 0) + (part.bytes?.length ?? 0);
    this.#delivered.set(sessionId, delivered % MOST_UNCOLLECTED);
    if (delivered >= MOST_UNCOLLECTED) cdp.send('HeapProfiler.collectGarbage', {}, sessionId).catch(() => {});
    await told;
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
