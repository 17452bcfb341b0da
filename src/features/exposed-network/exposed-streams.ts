import { randomUUID } from 'node:crypto';
import { finished, PassThrough, pipeline, type Readable } from 'node:stream';
import type { CdpClient } from '../../connect/cdp-client.js';
import type { EventParams } from '../../connect/message.js';
import { onAbort } from '../../shared/abort.js';
import { clock } from '../../shared/clock.js';
import { isRecord, jsonOf } from '../../shared/json.js';
import type { BrowserClients } from './browser-clients.js';
import { LONG_BODY } from './body-reader.js';
import type { ExposedResponse } from './exposed-request.js';
import { replaceFetch, type PartMessage } from './page-fetch.js';
import { valueOf } from './response-kinds.js';
import { pageOf, type AttachedTarget, type Targets } from './targets.js';

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
/** Number of requests of all pages that may be announced and have no response. */
const MOST_ANNOUNCED = 2000;

interface Stream {
  readonly parts: AsyncGenerator<Buffer, void>;
  readonly rest: Readable;
  /** The page waits for a part. */
  isPulled?: boolean;
  /** Where the page reads it: by session and JavaScript context. Undefined until it does. */
  reader?: string;
}

/** A request that a script of a page has sent. */
export interface TrackedRequest {
  /** Whether the page can read its response in parts. */
  isOfFetch(): boolean;
  /** It has its response, or has failed. */
  end(): void;
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
  /** The pages and URLs of the requests of the replaced function, by place and id. */
  readonly #announced = new Map<string, string>();
  /** By page and URL: the number of requests of the replaced function, and that of all that a script has sent. */
  readonly #ofFetch = new Counts();
  readonly #ofAll = new Counts();
  /** By session: characters of parts since garbage was collected. */
  readonly #delivered = new Counts();

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

  /**
   * Counts a request of a script. CDP does not say whether `fetch` has sent it: a page can read its response in parts if `fetch` has sent
   * all requests of the page to this URL.
   */
  track(target: AttachedTarget | undefined, url: string): TrackedRequest {
    const key = target && `${pageOf(target).targetId} ${url}`;
    if (key === undefined) return { isOfFetch: () => false, end: () => {} };
    this.#ofAll.add(key, 1);
    const isOfFetch = () => this.#ofFetch.get(key) >= Math.max(1, this.#ofAll.get(key));
    return { isOfFetch, end: () => this.#ofAll.add(key, -1) };
  }

  /** A script has called the function. Any script can say anything. */
  receive({ name, payload, executionContextId }: EventParams<'Runtime.bindingCalled'>, sessionId = ''): void {
    if (name !== NAME || payload.length > LONGEST_MESSAGE) return;
    const message = jsonOf(payload);
    const target = this.#plan.targets().of(sessionId);
    if (!target || !isRecord(message) || typeof message['id'] !== 'string') return;
    const { id, url } = message;
    const place = `${sessionId} ${executionContextId}`;
    const key = `${place} ${id}`;
    if (typeof url === 'string') {
      if (this.#announced.has(key) || this.#announced.size >= MOST_ANNOUNCED) return;
      const page = `${pageOf(target).targetId} ${url}`;
      this.#announced.set(key, page);
      this.#ofFetch.add(page, 1);
    } else if (message['isOver']) this.#forget(key);
    else this.#read(id, { place, sessionId, contextId: executionContextId }, message);
  }

  /** The documents of a target were left. */
  leave(sessionId: string, contextId?: number): void {
    const prefix = `${[sessionId, ...(contextId === undefined ? [] : [contextId])].join(' ')} `;
    for (const key of this.#announced.keys()) if (key.startsWith(prefix)) this.#forget(key);
    for (const [id, { reader }] of this.#open)
      if (reader !== undefined && `${reader} `.startsWith(prefix)) this.#close(id);
  }

  /**
   * Returns the response that the page receives first: it has no body, and names the stream.
   *
   * @param networkId Of the request, in the domain Network.
   */
  begin(
    response: Unread,
    { networkId, isCors }: { networkId: string | undefined; isCors: boolean },
  ): ExposedResponse {
    const id = randomUUID();
    const { body: beginning, rest, headers } = response;
    const [oldest] = this.#open.keys();
    if (this.#open.size >= MOST_OPEN) this.#close(oldest!);
    const length = Number(valueOf('content-length', headers));
    const kept = new KeptBody(rest, length <= LONG_BODY ? LONG_BODY : MOST_KEPT);
    this.#plan.clients.keepBody(networkId, () => kept.whole());
    const stream: Stream = { parts: partsOf([...beginning], rest, kept), rest };
    this.#open.set(id, stream);
    const stopListening = onAbort(this.#plan.signal, () => this.#close(id));
    finished(rest, stopListening);
    const giveUp = () => stream.reader === undefined && this.#close(id);
    clock.setTimeout(giveUp, LONGEST_ABSENCE).unref();
    const shown = isCors ? [`access-control-expose-headers: ${HEADER}`] : [];
    return { ...response, headers: [...headers, `${HEADER}: ${id}`, ...shown], body: [] };
  }

  /** A request of the replaced function has its response. */
  #forget(key: string): void {
    const page = this.#announced.get(key);
    if (page !== undefined) this.#ofFetch.add(page, -1);
    this.#announced.delete(key);
  }

  #close(id: string): void {
    this.#open.get(id)?.rest.destroy();
    this.#open.delete(id);
  }

  #read(
    id: string,
    { place, sessionId, contextId }: { place: string; sessionId: string; contextId: number },
    { isPull, isCancel }: Readonly<Record<string, unknown>>,
  ): void {
    const tell = (part: Omit<PartMessage, 'id'>) => {
      const call = {
        functionDeclaration: `function (part) { globalThis.${NAME}?.(part); }`,
        executionContextId: contextId,
        // Not in the code of an expression, which the browser would keep for some time.
        arguments: [{ value: { id, ...part } }],
      };
      const cdp = this.#plan.cdp();
      cdp.send('Runtime.callFunctionOn', call, sessionId).catch(() => {});
      this.#delivered.add(sessionId, part.bytes?.length ?? 0);
      if (this.#delivered.get(sessionId) < MOST_UNCOLLECTED) return;
      this.#delivered.add(sessionId, -MOST_UNCOLLECTED);
      cdp.send('HeapProfiler.collectGarbage', {}, sessionId).catch(() => {});
    };
    const stream = this.#open.get(id);
    // Only the first reader can read it: its id is a secret that the response contains. A server can name any.
    if (!stream || (stream.reader ??= place) !== place) return void (isPull && tell({ isError: true }));
    if (isCancel) return this.#close(id);
    if (!isPull || stream.isPulled) return;
    stream.isPulled = true;
    void nextOf(stream).then((part) => {
      stream.isPulled = false;
      if (part.bytes === undefined) this.#close(id);
      tell(part);
    });
  }
}

class Counts {
  readonly #counts = new Map<string, number>();

  get(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  add(key: string, change: number): void {
    const count = this.get(key) + change;
    if (count > 0) this.#counts.set(key, count);
    else this.#counts.delete(key);
  }
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
  beginning: readonly Buffer[],
  rest: Readable,
  kept: KeptBody,
): AsyncGenerator<Buffer, void> {
  // What arrives while the page handles a part becomes the next one.
  const buffered = new PassThrough({ highWaterMark: PART });
  pipeline(rest, buffered, () => {});
  for (const bytes of beginning) yield* slicesOf(bytes, kept);
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

  /** Resolves after the end. */
  async whole(): Promise<Buffer> {
    await this.#ended;
    if (this.#size > this.#most) throw new Error(NOT_KEPT);
    return Buffer.concat(this.#parts);
  }
}
