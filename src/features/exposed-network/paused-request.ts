import { LinkedAbort, onAbort } from '../../shared/abort.js';
import { clock, delay } from '../../shared/clock.js';
import { excerpt } from '../../shared/redact.js';
import type { EventParams, Session } from '../../wire/layer.js';
import {
  ShownError,
  type ExposedResponse,
  type Unread,
  beginningOf,
  isFile,
  isRange,
  isStreamOfEvents,
} from './response-bodies.js';
import { timeOf } from './browser-clients.js';
import type { Context } from './context.js';
import { LEFT, type EventsRequest, type EventStream, sourceOf } from './exposed-events.js';
import type { ExposedUrl } from './exposed-hosts.js';
import type { Received } from './exposed-request.js';
import { isOwnHeader, type ExposedStreams, type TrackedRequest } from './exposed-streams.js';
import type { ExposedUploads } from './request-bodies.js';
import { clearSiteData, isKeptBack, usesCookies } from './same-site.js';
import { pageOf } from './targets.js';

/** Milliseconds between two checks whether the page still waits for a response. */
const CHECK_INTERVAL = 250;
/** Length of a method and an URL in the console of a page, in characters. */
const LONGEST_NAME = 500;
/** How Chromium says that a request does not exist. */
const NO_REQUEST = /invalid interceptionid/i;

/** The errors of a connection, and our own, by their code, as a browser names them. */
const REASONS: Readonly<Record<string, string>> = {
  OFFLINE: 'InternetDisconnected',
  KEPT_BACK: 'BlockedByResponse',
  ECONNREFUSED: 'ConnectionRefused',
  ECONNRESET: 'ConnectionReset',
  EPIPE: 'ConnectionReset',
  ENOTFOUND: 'NameNotResolved',
  EAI_AGAIN: 'NameNotResolved',
  ETIMEDOUT: 'TimedOut',
  EHOSTUNREACH: 'AddressUnreachable',
  ENETUNREACH: 'AddressUnreachable',
};
/** How Node says that a connection was closed before a response. Its code is that of a reset. */
const HUNG_UP = 'socket hang up';
/** The codes of certificates that are refused. */
const CERTIFICATE = /CERT|SIGNATURE|^ERR_TLS|ISSUER|CRL/;

const CUT =
  'the response did not end. The page received its beginning: a response to an exposed request can not be a stream.';
const INSECURE =
  'Set ignoreHTTPSErrors of the context (Playwright) or acceptInsecureCerts of connectOptions (Puppeteer) to accept it.';

/** How a body is delivered that is not read as a whole. */
type Way = 'events' | 'range' | 'file' | 'parts';

/** What answers the requests of one WebSocket. */
export interface Answering extends Context {
  readonly streams: ExposedStreams;
  /** The large bodies that pages keep. */
  readonly kept: ExposedUploads;
}

/** A request that the browser has paused: it is sent from here, and its response delivered. */
export class PausedRequest {
  readonly #url: ExposedUrl;
  readonly #paused: EventParams<'Fetch.requestPaused'>;
  readonly #context: Answering;
  /** Aborts when no page waits for it. */
  readonly #abort: LinkedAbort;
  #watching: NodeJS.Timeout | undefined;
  /** The session of what has sent it, if this is a document or a script. */
  #session: Session | undefined;
  /** Found when there are cookies. */
  #cookies: Promise<boolean> | undefined;
  /** The announced request, if a script has sent it. */
  #tracked: TrackedRequest | undefined;

  constructor(url: ExposedUrl, paused: EventParams<'Fetch.requestPaused'>, context: Answering) {
    this.#url = url;
    this.#paused = paused;
    this.#context = context;
    this.#abort = new LinkedAbort(context.signal);
  }

  /** Never rejects: the page may be closed, and the request may have ended. */
  async answer(): Promise<void> {
    const { cdp, targets, streams, onRequest } = this.#context;
    const { requestId, frameId, resourceType = '', networkId, request } = this.#paused;
    onRequest(new URL(this.#url).host);
    this.#watch();
    try {
      const isOfScript = /^(XHR|Fetch|EventSource)$/.test(resourceType);
      if (isOfScript || resourceType === 'Document') this.#session = await targets.containing(frameId);
      if (isOfScript && this.#session)
        this.#tracked = streams.track(this.#session, frameId, request.url, networkId);
      await this.#answer(this.#abort.signal);
    } catch (error) {
      // The browser refuses some responses, and the page would wait for another one.
      const errorReason = this.#reasonOf(error);
      await cdp.send('Fetch.failRequest', { requestId, errorReason }).catch(() => {});
    } finally {
      this.#tracked?.end();
      this.#stopWatching();
      this.#abort.dispose();
    }
  }

  /** Aborts when no page waits for the response: the browser reports it only to those who ask. */
  #watch(): void {
    const { requestId } = this.#paused;
    this.#watching = clock.setInterval(() => {
      // It has no body. The error says whether there is such a request.
      this.#context.cdp.send('Fetch.getResponseBody', { requestId }).catch((error: unknown) => {
        if (this.#watching && NO_REQUEST.test((error as Error).message)) this.#abort.abort(LEFT);
      });
    }, CHECK_INTERVAL);
  }

  /** The browser has no request any longer when it has its response: that does not mean that the page was left. */
  #stopWatching(): void {
    clock.clearInterval(this.#watching);
    this.#watching = undefined;
  }

  async #answer(signal: AbortSignal): Promise<void> {
    const { clients, targets, events, uploads, sender } = this.#context;
    const { frameId, request } = this.#paused;
    const ofEvents = this.#ofEvents;
    const before = ofEvents && events.take(ofEvents);
    if (before?.isOver === false) return this.#fulfil(await before.next(signal));
    // The browser adds these below the interception.
    const added: Record<string, string> = ofEvents ? { Pragma: 'no-cache', 'Cache-Control': 'no-cache' } : {};
    if (before && before.lastId !== '') added['Last-Event-ID'] = before.lastId;
    const conditions = await clients.conditionsOf(targets, frameId);
    if (conditions?.offline) throw failure('OFFLINE');
    const started = clock.now();
    using upload = await uploads.read(this.#paused, this.#context, signal);
    const own = { ...added, ...(await this.#userAgent()), ...(await this.#withOwnCookies()) };
    const sent = { url: this.#url, method: request.method, headers: own, body: upload.bytes };
    const received = await sender.send(sent, signal);
    const way = this.#wayOf(received);
    const response = await this.#read(received, way, signal);
    let first = response;
    try {
      if (response.isCut) this.#warn(CUT);
      const time = conditions ? timeOf(conditions, upload.bytes, response.body) : 0;
      if (time > 0) await delay(Math.max(0, started + time - clock.now()), signal);
      if (await isKeptBack(this.#paused, response, this.#context)) throw failure('KEPT_BACK');
      signal.throwIfAborted();
      const { rest } = response;
      if (rest) first = await this.#begin({ ...response, rest }, { way, before }, signal);
      await clearSiteData(response.headers, this.#paused, this.#context);
      const headers = await this.#withOwnSetCookies(first.headers);
      this.#stopWatching();
      signal.throwIfAborted();
      await this.#fulfil({ ...first, headers }, response);
    } catch (error) {
      response.rest?.destroy();
      throw error;
    } finally {
      first.free();
    }
  }

  /** Returns the user agent of a request, which the browser also adds to the script of a worker, below the interception. */
  async #userAgent(): Promise<Record<string, string>> {
    const { clients, targets, sender } = this.#context;
    const { frameId, request } = this.#paused;
    if (Object.keys(request.headers).some((name) => name.toLowerCase() === 'user-agent')) return {};
    const session = await targets.containing(frameId);
    const agent = (session && clients.userAgentOf(pageOf(session).target.id)) ?? sender.userAgent;
    return agent === undefined ? {} : { 'User-Agent': agent };
  }

  /** Returns the headers of the request, with the cookies that the browser would send. */
  async #withOwnCookies(): Promise<Readonly<Record<string, string>>> {
    const { request } = this.#paused;
    const { Cookie: cookies, ...others } = request.headers;
    if (cookies === undefined) return others;
    return (await this.#usesCookies()) ? request.headers : others;
  }

  /** Returns the headers of a response, with the cookies that the browser would store. */
  async #withOwnSetCookies(headers: readonly string[]): Promise<readonly string[]> {
    const others = headers.filter((one) => !/^set-cookie:/i.test(one));
    return others.length === headers.length || (await this.#usesCookies()) ? headers : others;
  }

  #usesCookies(): Promise<boolean> {
    return (this.#cookies ??= usesCookies(this.#paused, this.#context));
  }

  /** How a body is delivered that is not read as a whole. Undefined if it is, as far as possible. */
  #wayOf(received: Received): Way | undefined {
    const { resourceType, networkId, request } = this.#paused;
    if (!received.stream) return undefined;
    if (isStreamOfEvents(received)) {
      if (this.#ofEvents) return 'events';
      return this.#isOfFetch ? 'parts' : undefined;
    }
    if (resourceType === 'Media') return isRange(received) ? 'range' : undefined;
    if (resourceType !== 'Document') return undefined;
    if (!this.#context.placeholders.arriveFrom(this.#session?.target.browserContextId)) return undefined;
    // The browser saves whatever it receives for a link with a file name.
    const isDownload = networkId === undefined && request.headers['Accept'] === undefined;
    return isFile(received, isDownload) ? 'file' : undefined;
  }

  /** Reads a body as a whole, as far as possible, unless it is delivered in another way. */
  async #read(received: Received, way: Way | undefined, signal: AbortSignal): Promise<ExposedResponse> {
    const own = { ...received, headers: received.headers.filter((one) => !isOwnHeader(one)) };
    if (way && received.stream)
      return { ...own, body: [], isCut: false, rest: received.stream, free: () => {} };
    return this.#context.bodies.read(own, () => this.#isOfFetch, signal);
  }

  /** What the browser receives first of a body that was not read to its end. */
  async #begin(
    unread: Unread,
    { way, before }: { way: Way | undefined; before: EventStream | undefined },
    signal: AbortSignal,
  ): Promise<ExposedResponse> {
    const { networkId, request } = this.#paused;
    const { events, streams } = this.#context;
    if (way === 'range') return beginningOf(unread, signal);
    if (way === 'events') return events.begin(this.#ofEvents!, unread, before).next(signal);
    if (way === 'file') return this.#placeholder(unread);
    const page = this.#session ? pageOf(this.#session).target.id : '';
    return streams.begin(unread, { page, networkId, isCors: request.headers['Origin'] !== undefined });
  }

  #placeholder(response: Unread): ExposedResponse {
    const { rest } = response;
    const { placeholders, end } = this.#context;
    rest.once(
      'close',
      onAbort(end, () => rest.destroy()),
    );
    const size = placeholders.add(this.#url, rest);
    const headers = response.headers.filter((one) => !/^content-(length|encoding):/i.test(one));
    return { ...response, headers: [...headers, `content-length: ${size}`], body: [Buffer.alloc(size)] };
  }

  /** @param shown The response whose headers clients of the browser see. */
  async #fulfil(response: ExposedResponse, shown: ExposedResponse = response): Promise<void> {
    const { requestId, request, networkId } = this.#paused;
    const { status, reason, headers, body } = response;
    const { cdp, clients } = this.#context;
    clients.noteExchange(networkId, request.url, shown);
    const answer = {
      requestId,
      responseCode: status,
      // For an empty phrase, the browser would use its own, or refuse the status.
      responsePhrase: reason || ' ',
      // Their bytes, whatever their encoding is.
      binaryResponseHeaders: Buffer.from(headers.join('\0'), 'latin1').toString('base64'),
    };
    await cdp.sendWithBody('Fetch.fulfillRequest', answer, 'body', body);
  }

  /** Returns the reason why a request fails, in the words of the browser. */
  #reasonOf(error: unknown): string {
    if (error instanceof ShownError) this.#warn(error.message);
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (CERTIFICATE.test(code)) this.#warn(`${message}. ${INSECURE}`);
    return message === HUNG_UP ? 'ConnectionClosed' : (REASONS[code] ?? 'Failed');
  }

  #warn(text: string): void {
    const { origin, pathname } = new URL(this.#url);
    const { request, frameId } = this.#paused;
    // A query or a user name with a password can contain a secret.
    const name = excerpt(`${request.method} ${origin}${pathname}`, LONGEST_NAME);
    void this.#context.targets.warn(frameId, `${name}: ${text}`);
  }

  /** Undefined if no EventSource has sent it. */
  get #ofEvents(): EventsRequest | undefined {
    const { frameId, request } = this.#paused;
    const source = sourceOf(request);
    return source === undefined ? undefined : { frameId, url: this.#url, source };
  }

  /** Whether the page can read its response in parts. */
  get #isOfFetch(): boolean {
    return this.#tracked?.isOfFetch() ?? false;
  }
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}
