import type { Browser } from 'playwright-core';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import { LinkedAbort, onAbort, raceTimeout } from '../../shared/abort.js';
import { backoff, clock, delay } from '../../shared/clock.js';
import { excerpt } from '../../shared/redact.js';
import { CdpClient } from '../../connect/cdp-client.js';
import type { ConnectExtension } from '../../connect/extension.js';
import { freeLoggedObjects } from '../../connect/logged-objects.js';
import { EVENTS_SCRIPT, EventStreams } from './exposed-events.js';
import { ExposedHosts, type ExposedUrl } from './exposed-hosts.js';
import { TooLargeError } from './body-reader.js';
import { ExposedSender, type ExposedResponse, type ResponseHead } from './exposed-request.js';
import { ExposedStreams, isOwnHeader } from './exposed-streams.js';
import type { TrackedRequest } from './fetch-requests.js';
import { ExposedWebSockets } from './exposed-websocket.js';
import { BrowserClients, timeOf } from './browser-clients.js';
import { beginningOf, isFile, isRange, isStreamOfEvents, valueOf } from './response-kinds.js';
import { areOfOneSite } from './same-site.js';
import { pageOf, Targets, type AttachedTarget } from './targets.js';
import type { MessageFilter, MessageRules } from '../../connect/message-filter.js';
import type { EventParams } from '../../connect/message.js';
import { PageStarts } from '../../connect/page-starts.js';
import type { CdpSocket, OpenCdp } from '../../connect/socket.js';
import { StandIns } from '../../connect/stand-ins.js';

/** Time to end the interception, in ms; then its socket is closed. */
const STOP_TIMEOUT = 1000;
/** Attempts to replace a lost socket, and the pauses between them. */
const ATTEMPTS = 4;
/** Milliseconds between two checks whether the page still waits for a response. */
const CHECK_INTERVAL = 250;
/** Maximum size in bytes of the bodies of several requests together: a browser sends each as a whole, and a server can be slow. */
const MOST_UPLOADING = 512 * 1024 * 1024;
/** Number of requests whose first URLs are kept, and the length of one in characters. */
const MOST_URLS = 1000;
const LONGEST_URL = 16 * 1024;
/** Number of texts that the consoles of pages show, and the length of one in characters. */
const MOST_WARNINGS = 1000;
const LONGEST_WARNING = 500;
const PAUSES = { factor: 2, minTimeout: 100, maxTimeout: 1000, randomize: true };

/** What a lease exposes, and how. */
export interface ExposePlan {
  /** The option `exposeNetwork`. */
  readonly hosts: string;
  /** Accept certificates that no known authority has signed. */
  readonly acceptsInsecureCerts: boolean;
  readonly open: OpenCdp;
  /** Of the connection of the library, if there is one. */
  readonly filter?: MessageFilter;
  /** Who waits for new pages, with this one. */
  readonly starts?: PageStarts;
  /** Files that the library downloads. */
  readonly standIns?: StandIns;
  /** Whose rules apply to the messages of all clients. */
  readonly clients?: BrowserClients;
  /** Called with each exposed host, and its port, that is requested. */
  onRequest(host: string): void;
  /** Called if the WebSocket was lost and can't be replaced: the requests of the pages fail. */
  onLost(): void;
}

/** How the rest of a body that was not read to its end is delivered. */
type Way = 'events' | 'parts' | 'range' | 'file';

/** What has sent a request. */
interface Sender {
  /** Of documents and scripts. */
  readonly target: AttachedTarget | undefined;
  readonly tracked: TrackedRequest;
  /** The browser has no request any longer when it has its response: that does not mean that the page was left. */
  stopWatching(): void;
}

interface SendHow {
  readonly url: ExposedUrl;
  /** A header with the id of the last event. */
  readonly last: Readonly<Record<string, string>>;
  readonly warn: (text: string) => void;
  readonly from: Sender;
}

type PausedRequest = EventParams<'Fetch.requestPaused'>;

/** A file of this machine that the library has put into a form. */
interface FormFile {
  readonly path: string;
  /** As it is in the form. */
  readonly name: string;
  /** Of the form, or of its page. */
  readonly frameId: string | undefined;
}

/** The errors of a connection, by their code, as a browser names them. */
const REASONS: Readonly<Record<string, string>> = {
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

/**
 * Answers the requests of a browser to some hosts from this machine: the browser pauses those requests, in all its pages,
 * workers and contexts, and continues all others by itself. It uses a WebSocket of its own, so it depends on no library, and
 * large bodies do not delay the library's messages.
 */
export class ExposedNetwork implements ConnectExtension {
  readonly #hosts: ExposedHosts;
  readonly #plan: ExposePlan;
  readonly #sender = new ExposedSender();
  readonly #webSockets: ExposedWebSockets;
  readonly #targets: Targets;
  readonly #clients: BrowserClients;
  /** Aborts the requests that are under way. */
  readonly #abort = new LinkedAbort();
  readonly #events = new EventStreams(this.#abort.signal);
  readonly #streams: ExposedStreams;
  readonly #standIns: StandIns;
  readonly #warned = new Set<string>();
  /** The first URLs of requests, which can be redirected, by their ids in the domain Network. */
  readonly #firstUrls = new Map<string, string>();
  /** The files that the library has put into forms. */
  readonly #files: FormFile[] = [];
  /** Bytes of the bodies of requests whose servers have not answered. */
  #uploading = 0;
  #isOpen = false;
  #socket: CdpSocket | undefined;
  #cdp: CdpClient | undefined;

  constructor(plan: ExposePlan) {
    this.#plan = plan;
    this.#standIns = plan.standIns ?? new StandIns();
    this.#hosts = new ExposedHosts(plan.hosts);
    this.#sender.acceptsInsecureCerts = plan.acceptsInsecureCerts;
    this.#clients = plan.clients ?? new BrowserClients();
    const cdp = () => this.#cdp!;
    this.#targets = new Targets(cdp, plan.starts ?? new PageStarts(), (target) => this.#prepare(target));
    this.#webSockets = new ExposedWebSockets({
      hosts: this.#hosts,
      clients: this.#clients,
      cdp,
      targets: () => this.#targets,
      signal: this.#abort.signal,
      acceptsInsecureCerts: () => this.#sender.acceptsInsecureCerts,
      onRequest: (host) => plan.onRequest(host),
    });
    this.#streams = new ExposedStreams({
      pattern: this.#hosts.pattern.source,
      cdp,
      targets: () => this.#targets,
      clients: this.#clients,
      signal: this.#abort.signal,
    });
    const note = (files: string[], frameId: string | undefined) => {
      for (const path of files)
        this.#files.push({ path, frameId, name: basename(path).replaceAll('"', '%22') });
      return undefined;
    };
    plan.filter?.add({
      commands: {
        'DOM.setFileInputFiles': ({ files }, sessionId = '') =>
          note(files, this.#clients.targetOf(sessionId)),
        'input.setFiles': ({ files, context }) => note(files, context),
      },
    });
  }

  /** Of the messages of a client of the browser that connects later. */
  get rules(): readonly MessageRules[] {
    return [this.#clients.rules];
  }

  /** What runs in pages and workers before their own scripts. */
  get #script(): string {
    return `${this.#webSockets.script} ${this.#streams.script} ${EVENTS_SCRIPT}`;
  }

  /** With Playwright, the options of contexts are not visible otherwise, and scripts of its own replace WebSocket, too. */
  async useBrowser(library: string, browser: object): Promise<void> {
    if (library !== 'playwright') return;
    const one = browser as Browser;
    const content = this.#script;
    const newContext = one.newContext.bind(one);
    one.newContext = async (options) => {
      // The browser does not report which context sent a request.
      if (options?.ignoreHTTPSErrors) this.#sender.acceptsInsecureCerts = true;
      const context = await newContext(options);
      await context.addInitScript({ content });
      return context;
    };
    await Promise.all(one.contexts().map((context) => context.addInitScript({ content })));
  }

  /** Begins the interception. */
  async open(signal: AbortSignal): Promise<void> {
    const socket = await this.#plan.open(signal);
    if (this.#abort.signal.aborted) return socket.cut('closed-by-us');
    this.#socket = socket;
    const { listeners } = this.#targets;
    const cdp: CdpClient = new CdpClient(socket.takeOver(), {
      ...listeners,
      ...freeLoggedObjects(() => cdp),
      'Fetch.requestPaused': (paused) => void this.#answer(cdp, paused),
      'Runtime.bindingCalled': (call, _data, session) => {
        this.#webSockets.receive(call, session);
        this.#streams.receive(call, session);
      },
      'Runtime.executionContextsCleared': (params, data, session = '') => {
        this.#leave(session);
        listeners['Runtime.executionContextsCleared']?.(params, data, session);
      },
      'Runtime.executionContextDestroyed': (params, data, session = '') => {
        this.#leave(session, params.executionContextId);
        listeners['Runtime.executionContextDestroyed']?.(params, data, session);
      },
      'Target.detachedFromTarget': (params, data, session) => {
        this.#leave(params.sessionId ?? '');
        listeners['Target.detachedFromTarget']?.(params, data, session);
      },
    });
    this.#cdp = cdp;
    const patterns = this.#hosts.cdpPatterns.map((urlPattern) => ({ urlPattern }));
    this.#isOpen = false;
    await Promise.all([cdp.send('Fetch.enable', { patterns }), this.#targets.open()]);
    this.#isOpen = true;
    void socket.ended.then(() => this.#replace());
  }

  async #prepare(target: AttachedTarget): Promise<void> {
    const cdp = this.#cdp!;
    const { sessionId } = target;
    // The browser's own `Fetch.enable` applies to what is loaded later. Those of open pages and workers make them create their loaders again.
    const renewed = this.#isOpen
      ? []
      : [cdp.send('Fetch.enable', { patterns: [] }, sessionId), cdp.send('Fetch.disable', {}, sessionId)];
    // The browser handles commands in order.
    const bound = this.#streams.prepare(target);
    await Promise.all([...renewed, bound, this.#webSockets.prepare(target, this.#script)]);
  }

  /** The documents of a target, or one of them, were left. */
  #leave(session: string, contextId?: number): void {
    this.#webSockets.leave(session, contextId);
    this.#streams.leave(session, contextId);
  }

  /** Ends the interception. Afterwards no response, and no cookie of one, reaches the browser. Never rejects. */
  async stop(): Promise<void> {
    const cdp = this.#cdp;
    this.#end();
    const late = () => new Error('The browser did not respond.');
    // Its response follows the effects of all earlier commands.
    await raceTimeout(STOP_TIMEOUT, async () => cdp?.send('Fetch.disable'), late).catch(() => {});
    this.cut();
  }

  /** Ends the interception, without a response of the browser. */
  cut(): void {
    this.#end();
    this.#webSockets.cut();
    this.#socket?.cut('closed-by-us');
    this.#sender.close();
  }

  #end(): void {
    // Without a reason, Node would create an error with a stack trace.
    this.#abort.abort('stopped');
    this.#targets.close();
    this.#abort.dispose();
  }

  async #replace(): Promise<void> {
    const { signal } = this.#abort;
    this.#streams.lose();
    this.#webSockets.cut();
    for (let failures = 1; !signal.aborted && failures <= ATTEMPTS; failures++) {
      try {
        return await this.open(signal);
      } catch {
        this.#socket?.cut('closed-by-us');
        await delay(backoff(PAUSES, failures), signal).catch(() => {});
      }
    }
    if (!signal.aborted) this.#plan.onLost();
  }

  /** Never rejects: the page may be closed, and the request gone. */
  async #answer(cdp: CdpClient, paused: PausedRequest): Promise<void> {
    const { requestId } = paused;
    const abort = new LinkedAbort(this.#abort.signal);
    const stopWatching = this.#watch(cdp, requestId, abort);
    const { frameId, resourceType = '' } = paused;
    const isOfScript = /^(XHR|Fetch|EventSource)$/.test(resourceType);
    const target =
      isOfScript || resourceType === 'Document' ? await this.#targets.containing(frameId) : undefined;
    const tracked = this.#streams.track(isOfScript ? target : undefined, frameId, this.#firstUrlOf(paused));
    try {
      await this.#answerOf(cdp, paused, { target, tracked, stopWatching }, abort.signal);
    } catch {
      // The browser refuses some responses, and the page would wait for another one.
      await cdp.send('Fetch.failRequest', { requestId, ...FAILED }).catch(() => {});
    } finally {
      tracked.end();
      stopWatching();
      abort.dispose();
    }
  }

  /** Aborts a request when no page waits for it: the browser reports it only to those who ask. Returns a function that ends it. */
  #watch(cdp: CdpClient, requestId: string, abort: LinkedAbort): () => void {
    let isOver = false;
    const timer = clock.setInterval(() => {
      // It has no body. The error says whether there is such a request.
      cdp.send('Fetch.getResponseBody', { requestId }).catch((error: unknown) => {
        if (!isOver && NO_REQUEST.test((error as Error).message)) abort.abort('left');
      });
    }, CHECK_INTERVAL);
    return () => {
      isOver = true;
      clock.clearInterval(timer);
    };
  }

  async #answerOf(cdp: CdpClient, paused: PausedRequest, from: Sender, signal: AbortSignal): Promise<void> {
    const { requestId, request, frameId } = paused;
    const url = this.#hosts.read(request.url, 'request');
    if (url === undefined) return void (await cdp.send('Fetch.continueRequest', { requestId }));
    const { host, origin, pathname } = new URL(url);
    this.#plan.onRequest(host);
    // A query or a user name with a password can contain a secret.
    const shown = `${request.method} ${origin}${pathname}`;
    const warn = (text: string) => this.#warn(cdp, frameId, `${excerpt(shown, LONGEST_WARNING)}: ${text}`);
    const fail = async (errorReason: string) => {
      if (!signal.aborted) await cdp.send('Fetch.failRequest', { requestId, errorReason });
    };
    const before = isOfEventSource(paused, from) ? this.#events.take(frameId, url) : undefined;
    if (before?.hasEnded === false) return this.#fulfil(cdp, paused, await before.next(signal));
    const last: Record<string, string> =
      before && before.lastId !== '' ? { 'Last-Event-ID': before.lastId } : {};
    const conditions = await this.#clients.conditionsOf(this.#targets, frameId);
    if (conditions?.offline) return fail('InternetDisconnected');
    const started = clock.now();
    const sent = await this.#send(paused, { url, last, warn, from }, signal);
    if (typeof sent === 'string') return fail(sent);
    const { response, way, uploaded } = sent;
    let first = response;
    try {
      if (response.isCut) warn(CUT);
      const time = conditions ? timeOf(conditions, { uploaded, response }) : 0;
      if (conditions) await delay(Math.max(0, started + time - clock.now()), signal);
      if (await this.#isRefused(paused, response)) {
        response.rest?.destroy();
        return await fail('BlockedByResponse');
      }
      if (signal.aborted) return;
      first = await this.#firstOf(paused, { url, way, from }, response, signal);
      from.stopWatching();
      if (signal.aborted) return;
      await this.#fulfil(cdp, paused, first, response);
    } finally {
      first.free();
      if (signal.aborted) response.rest?.destroy();
    }
  }

  /** Sends a request to its server. Resolves to the response, or to the reason why there is none. */
  async #send(
    paused: PausedRequest,
    { url, last, warn, from }: SendHow,
    signal: AbortSignal,
  ): Promise<{ response: ExposedResponse; way: Way; uploaded: number } | string> {
    const { request } = paused;
    const body = request.postDataEntries && (await this.#readBody(request.postDataEntries, paused.frameId));
    // The text is larger than the bytes.
    delete request.postDataEntries;
    const isUnreadable = request.hasPostData === true && !body;
    const uploaded = body?.length ?? 0;
    const isTooMuch = this.#uploading > 0 && this.#uploading + uploaded > MOST_UPLOADING;
    if (isUnreadable || isTooMuch) {
      warn(isUnreadable ? UNREADABLE_BODY : TOO_MANY_UPLOADS);
      return 'Failed';
    }
    const headers = { ...last, ...request.headers };
    let way: Way = 'parts';
    const keeps = (head: ResponseHead) => {
      const found = this.#wayOf(paused, from, head);
      way = found ?? way;
      return found !== undefined;
    };
    const how = { isOfEvents: isOfEvents(paused), keeps, canContinue: () => from.tracked.isOfFetch() };
    this.#uploading += uploaded;
    try {
      const { method } = request;
      const received = await this.#sender.send({ url, method, headers, body, ...how }, signal);
      const response = { ...received, headers: received.headers.filter((one) => !isOwnHeader(one)) };
      return { response, way, uploaded };
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException;
      if (error instanceof TooLargeError) warn(TOO_LARGE);
      else if (isCertificateFault(code)) warn(`${message}. ${INSECURE}`);
      return message === HUNG_UP ? 'ConnectionClosed' : (REASONS[code] ?? 'Failed');
    } finally {
      this.#uploading -= uploaded;
    }
  }

  /** How a body is delivered that is not read as a whole. Undefined if it is, as far as possible. */
  #wayOf(paused: PausedRequest, from: Sender, head: ResponseHead): Way | undefined {
    const { resourceType, networkId, request } = paused;
    if (isStreamOfEvents(head)) {
      if (isOfEventSource(paused, from)) return 'events';
      return from.tracked.isOfFetch() ? 'parts' : undefined;
    }
    if (resourceType === 'Media') return isRange(head) ? 'range' : undefined;
    if (resourceType !== 'Document' || !this.#standIns.arriveFrom(from.target?.browserContextId))
      return undefined;
    // Of a link with a file name: the browser saves whatever it receives.
    const isDownload = networkId === undefined && request.headers['Accept'] === undefined;
    return isFile(head, isDownload) ? 'file' : undefined;
  }

  /** Of a body that was not read to its end, what the browser receives first. */
  async #firstOf(
    { frameId, networkId, request }: PausedRequest,
    { url, way, from }: { url: ExposedUrl; way: Way; from: Sender },
    response: ExposedResponse,
    signal: AbortSignal,
  ): Promise<ExposedResponse> {
    const { rest } = response;
    if (!rest) return response;
    const unread = { ...response, rest };
    if (way === 'range') return beginningOf(unread, signal);
    if (way === 'events') return this.#events.begin(frameId, url, unread).next(signal);
    if (way === 'file') return this.#standIn(url, unread);
    const page = from.target ? pageOf(from.target).targetId : '';
    return this.#streams.begin(unread, { page, networkId, isCors: request.headers['Origin'] !== undefined });
  }

  #standIn(url: ExposedUrl, response: ExposedResponse & { readonly rest: Readable }): ExposedResponse {
    const { rest } = response;
    const stopListening = onAbort(this.#abort.signal, () => rest.destroy());
    rest.once('close', stopListening);
    const size = this.#standIns.add(url, rest);
    const headers = response.headers.filter((one) => !/^content-(length|encoding):/i.test(one));
    return { ...response, headers: [...headers, `content-length: ${size}`], body: [Buffer.alloc(size)] };
  }

  /** @param shown The response whose headers clients of the browser see. */
  async #fulfil(
    cdp: CdpClient,
    { requestId, request, networkId }: PausedRequest,
    { status, reason, sent, headers, body }: ExposedResponse,
    shown: Pick<ExposedResponse, 'headers'> = { headers },
  ): Promise<void> {
    this.#clients.noteExchange(networkId, { url: request.url, sent, received: shown.headers, status });
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

  /** The URL of a request before its redirects. */
  #firstUrlOf({ networkId, request: { url } }: PausedRequest): string {
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

  /** Whether the server keeps a response from pages of other origins: the browser checks this only on its own connections. */
  async #isRefused(
    { request, frameId, resourceType }: PausedRequest,
    { headers }: ExposedResponse,
  ): Promise<boolean> {
    const policy = valueOf('cross-origin-resource-policy', headers) ?? '';
    if (resourceType === 'Document') return false;
    // A request of CORS has rules of its own.
    const isAllowed = valueOf('access-control-allow-origin', headers) !== undefined;
    if (request.headers['Origin'] !== undefined && isAllowed) return false;
    if (!/^same-(origin|site)$/.test(policy)) return false;
    const [origin, target] = await Promise.all([
      this.#targets.originOf(frameId),
      this.#targets.containing(frameId),
    ]);
    if (origin === undefined || target === undefined) return false;
    // Of a document without an origin: it is of no site.
    if (!URL.canParse(origin)) return true;
    const [page, server] = [new URL(origin), new URL(request.url)];
    if (page.origin === server.origin) return false;
    const isLessSecure = page.protocol !== 'https:' && server.protocol === 'https:';
    if (policy === 'same-origin' || isLessSecure) return true;
    return !(await areOfOneSite([page, server], this.#cdp!, target.sessionId));
  }

  /** Resolves to undefined if a part can't be read. */
  async #readBody(
    parts: NonNullable<PausedRequest['request']['postDataEntries']>,
    frameId: string,
  ): Promise<Buffer | undefined> {
    const read: Buffer[] = [];
    for (const { bytes } of parts) {
      const part = bytes === undefined ? await this.#readFile(read.at(-1), frameId) : bytesOf(bytes);
      if (!part) return undefined;
      read.push(part);
    }
    return read.length === 1 ? read[0] : Buffer.concat(read);
  }

  /**
   * The browser does not send the files of a form. Those that the library has put into forms of this page are on this machine, unless two
   * of them have the name.
   */
  async #readFile(before: Buffer | undefined, frameId: string): Promise<Buffer | undefined> {
    const [, name = ''] = FILE_HEAD.exec(String(before?.subarray(-LONGEST_FILE_HEAD))) ?? [];
    const page = await this.#targets.containing(frameId);
    const paths = new Set<string>();
    for (const file of this.#files)
      if (file.name === name && page && (await this.#targets.containing(file.frameId ?? '')) === page)
        paths.add(file.path);
    const [path, other] = paths;
    return path === undefined || other !== undefined ? undefined : readFile(path).catch(() => undefined);
  }

  /** Shows a text once in the console of the page, or of the worker. */
  #warn(cdp: CdpClient, frameId: string, text: string): void {
    if (this.#warned.has(text) || this.#warned.size >= MOST_WARNINGS) return;
    this.#warned.add(text);
    const expression = `console.warn(${JSON.stringify(`exposeNetwork: ${text}`)})`;
    const show = async () => {
      const target = await this.#targets.containing(frameId);
      if (target) await cdp.send('Runtime.evaluate', { expression }, target.sessionId);
    };
    show().catch(() => {});
  }
}

/** A small part is in base64. */
function bytesOf(part: string | Uint8Array): Buffer {
  if (typeof part === 'string') return Buffer.from(part, 'base64');
  return Buffer.from(part.buffer, part.byteOffset, part.byteLength);
}

function isOfEvents({ request: { method, headers } }: PausedRequest): boolean {
  return method === 'GET' && headers['Accept'] === 'text/event-stream';
}

function isOfEventSource(paused: PausedRequest, { tracked }: Sender): boolean {
  return isOfEvents(paused) && !tracked.isOfFetch();
}

const FAILED = { errorReason: 'Failed' };
/** How Chromium says that a request does not exist. */
const NO_REQUEST = /invalid interceptionid/i;

/** The end of the head of a file in a form, and its maximum length in bytes. */
const FILE_HEAD = /; filename="([^"\r\n]+)"(?:\r\n[^\r\n]+)*\r\n\r\n$/;
const LONGEST_FILE_HEAD = 2000;

const CUT =
  'the response did not end. The page received its beginning: a response to an exposed request can not be a stream.';
const TOO_LARGE = 'the response has more than 64 MB, which can not be sent to the browser.';
const TOO_MANY_UPLOADS = 'the bodies of the requests that are under way would have more than 512 MB.';
const UNREADABLE_BODY =
  'the body can not be read: it is a stream, or a form with two files of one name or with a file of the machine of the browser. Pass the content of the file to the page.';
const INSECURE =
  'Set ignoreHTTPSErrors of the context (Playwright) or acceptInsecureCerts of connectOptions (Puppeteer) to accept it.';

function isCertificateFault(code: string): boolean {
  return /CERT|SIGNATURE|^ERR_TLS|ISSUER|CRL/.test(code);
}
