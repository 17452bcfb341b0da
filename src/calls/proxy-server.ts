import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { BrowserProtocol } from '../drivers/connector.js';
import { channelOf, type Channel } from '../drivers/relay.js';
import { openPageSession } from '../wire/page-session.js';
import type { Client } from '../wire/client.js';
import type { ClientSocket } from '../drivers/socket.js';
import { raceAbort, raceTimeout } from '../shared/abort.js';
import { clock, delay } from '../shared/clock.js';
import { duration, InvalidOptionError, isPooledBrowserError } from '../shared/errors.js';
import { AcquireTimeoutError, LeaseExpiredError } from '../shared/lease-errors.js';
import type { PoolList } from '../pool/browser-pool.js';
import type { AllSettings, ProxySettings } from './options.js';
import { NO_BIDI } from '../features/allowed-hosts/options.js';
import { patternOf, readHosts } from '../shared/hosts.js';
import {
  createLoopbackServer,
  extensionOf,
  isSameSecret,
  listenOnLoopback,
  Refusal,
  refuseUpgrade,
  sourceFault,
} from '../net/loopback-server.js';
import { PoolClosedError } from '../shared/service-errors.js';
import { askBrowser, expectMethod, type DebuggingAnswer } from './debugging-requests.js';
import { answerLease } from './lease-requests.js';
import { IDLE, NOT_LOADED, openFor, ProxiedBrowser, type ProxyPlan } from './proxied-browser.js';
import { expiredAfter, type KeptBrowsers } from './kept-browsers/kept-browsers.js';
import type { OpenRouteOptions, ProxyEndpoint, ProxyRoute } from './proxy-endpoint.js';
import { closeClient, NORMAL, serveClient, WaitingClient } from './proxy-client.js';

/** The paths below the secret: of the browser, of a named browser, of its pages and its lease, and of the requests of a debugging port. */
const PATH =
  /^(?:\/(?!(?:json|session|devtools|playwright|\.\.?)(?:\/|$))(?<name>[\w.-]{1,64}))?(?:\/|(?<bidi>\/session)|(?<lease>\/lease)|(?<handoff>\/handoff)|\/devtools\/browser(?:\/[\w-]*)?|\/devtools\/page\/(?<page>[\w-]+)|\/json(?<json>|\/\w+|\/(?:activate|close)\/[\w-]+)\/?)?$/;

const NO_NAME =
  'A name has 1 to 64 letters, digits, ".", "_" and "-", and is not json, session, devtools, playwright, "." or "..".';
const notOfDebugging = (path: string) =>
  `/${path} is the address of another protocol, for chromium.connect(): give the browser another name for CDP.`;
const NO_PATH =
  'There is no such path. Below the address, a path is /NAME, /session, /json/version, one of these after /NAME, /NAME/lease, or ' +
  `/playwright, /playwright/NAME. ${NO_NAME}`;

/** The reason of the end of a browser that was not leased before its first client: nobody has its name. */
const GIVEN_UP = new Error('The browser was not leased.');

/** Time in ms for the last client of a name to disconnect: its end can arrive after the next client. */
const CLIENT_CHANGE = 1000;
/** The same for what served a client that has disconnected: the thread of a client of Playwright ends slowly on a busy machine. */
const LONGEST_CLIENT_CHANGE = 10_000;
/** Time in ms between two looks. */
const LOOK = 20;

/** The page that `/json/list` shows: the browser does not exist yet. */
const ANY_PAGE = 'any';

/** Most names that are remembered. */
const MOST_ENDED = 1000;

interface Place {
  readonly name: string | undefined;
  /** Identifies a browser that has more than one client; `undefined` for one that has not. */
  readonly key: string | undefined;
  readonly protocol: BrowserProtocol;
  /** Id of a page, for a connection to one page only. */
  readonly page: string | undefined;
  /** The part of the path after `/json`. */
  readonly json: string | undefined;
  /** The request is about the lease of a named browser. */
  readonly isOfLease: boolean;
  /** A program asks for a person. */
  readonly isHandoff: boolean;
  /** The endpoint for a client with another protocol than the browser. */
  readonly endpoint: ProxyEndpoint | undefined;
  /** Id of the browser extension that sends the request. */
  readonly extension: string | undefined;
}

/** A browser to find, or to lease for `lifetime` ms: by default as long as the proxy's option says. */
type Wanted = Pick<Place, 'name' | 'key' | 'protocol'> & { readonly lifetime?: number | undefined };

/** The HTTP server of `serveProxy`. It listens on 127.0.0.1 only. */
export class ProxyServer implements AsyncDisposable {
  readonly #plan: ProxyPlan;
  readonly #loopback = createLoopbackServer();
  readonly #server = this.#loopback.server;
  /** The beginning of each path, which nobody can guess. */
  readonly #prefix: string;
  readonly #browsers = new Set<ProxiedBrowser>();
  /** Those that a later client can use, by key. */
  readonly #named = new Map<string | undefined, ProxiedBrowser>();
  /** How browsers that had clients have ended, by key: after an idle time or at the end of their lease. */
  readonly #ended = new Map<string, string>();
  readonly #waiting = new Set<WaitingClient>();
  /** The URLs that a client may reach. Undefined: all. */
  readonly #allowed: RegExp | undefined;
  #host = '';
  #connected = 0;
  #closed: Promise<void> | undefined;

  static async start<Session extends object>(
    pools: PoolList<Session>,
    settings: AllSettings<Session> & ProxySettings,
    how: Omit<ProxyPlan, 'open' | 'settings' | 'kept'> & { readonly kept: KeptBrowsers<Session> | undefined },
  ): Promise<ProxyServer> {
    const proxy = new ProxyServer({ settings, ...how, open: openFor(pools, settings, how.kept) });
    await proxy.#listen();
    return proxy;
  }

  private constructor(plan: ProxyPlan) {
    const { settings, ownSecret = globalThis.crypto.randomUUID() } = plan;
    this.#plan = plan;
    this.#allowed = reachableUrls(settings);
    this.#prefix = settings.secret ? `/${ownSecret}` : '';
  }

  get url(): string {
    return `http://${this.#host}${this.#prefix}`;
  }

  /** The WebSocket URL of a further protocol; undefined if nobody can connect there. */
  urlOf(endpoint: ProxyEndpoint): string | undefined {
    if (endpoint.fault(this.#prefix !== '') !== undefined) return undefined;
    return `ws://${this.#host}${this.#prefix}/${endpoint.path}`;
  }

  get counts() {
    const leased = [...this.#browsers].filter(({ isLeased }) => isLeased).length;
    return { connected: this.#connected, waiting: this.#waiting.size, leased };
  }

  /** The browsers that have a name: those that are leased, and those that are waited for. */
  get named(): readonly ProxiedBrowser[] {
    return [...this.#named.values()];
  }

  /**
   * Leases the browser of a name for clients that come later: it waits for each of them as between two clients.
   *
   * @param how `lifetime` in ms; by default that of the proxy. `signal` ends the wait for a browser.
   * @throws The error of a lease; InvalidOptionError if the path can't have the name; Refusal if the name is in use.
   */
  async lease(
    name: string,
    { signal, lifetime }: { signal: AbortSignal; lifetime: number | undefined },
  ): Promise<ProxiedBrowser> {
    if (PATH.exec(`/${name}`)?.groups?.['name'] !== name) throw new InvalidOptionError('name', NO_NAME);
    if (this.#named.has(name)) throw new Refusal(409, `The name "${name}" is in use.`);
    const browser = this.#browserOf({ name, key: name, protocol: 'cdp', lifetime });
    try {
      await browser.serve({ protocol: 'cdp', signal, extension: undefined }, async () => false);
      signal.throwIfAborted();
      return browser;
    } catch (error) {
      void browser.end(GIVEN_UP);
      throw error;
    }
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #listen(): Promise<void> {
    const { port } = this.#plan.settings;
    const server = this.#server;
    try {
      this.#host = await listenOnLoopback(server, port);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const reason = code === 'EADDRINUSE' ? 'another program uses it' : code;
      const message = `port ${port} can't be opened: ${reason}. Choose another port, or 0 for any free port.`;
      throw new InvalidOptionError('port', message);
    }
    server.on('request', (request, response) => void this.#answer(request, response));
    server.on('upgrade', (request, connection, head) => void this.#upgrade(request, connection, head));
  }

  async #close(): Promise<void> {
    const reason = new Refusal(503, 'The proxy has ended.');
    const closed = once(this.#server, 'close');
    this.#server.close();
    await Promise.all([...this.#browsers].map((browser) => browser.end(reason, true)));
    await this.#plan.kept?.close();
    this.#loopback.cut();
    await closed;
  }

  /** Answers a request of a debugging port. HEAD is answered as GET: the server leaves the body out. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('The client closed its connection.')));
    try {
      const place = this.#placeOf(request);
      if (place.endpoint) this.#expectServed(place.endpoint);
      if (place.isHandoff) return await this.#askPerson(request, response, place, gone.signal);
      const answer = await this.#answerTo(request, place, gone.signal);
      const isText = 'text' in answer;
      const body = isText ? answer.text : JSON.stringify(answer.json);
      const type = isText ? PLAIN_TEXT : { 'content-type': 'application/json; charset=utf-8' };
      response.writeHead(200, { ...type, 'content-length': Buffer.byteLength(body) }).end(body);
    } catch (error) {
      if (gone.signal.aborted) return;
      const { status, message } = refusalOf(error);
      response.writeHead(status, PLAIN_TEXT).end(`${message}\n`);
    }
  }

  /** Answers a program that asks for a person. @throws Refusal */
  async #askPerson(
    request: IncomingMessage,
    response: ServerResponse,
    { key, name }: Place,
    gone: AbortSignal,
  ): Promise<void> {
    const browser = key === undefined ? undefined : this.#named.get(key);
    if (!browser?.isLeased)
      throw new Refusal(409, `There is no browser "${name}" now. Connect a client to it, and ask again.`);
    const { status, body } = await browser.handoffs.answer(request, gone);
    response
      .writeHead(status, { 'content-type': 'application/json; charset=utf-8' })
      .end(JSON.stringify(body));
  }

  async #answerTo(request: IncomingMessage, place: Place, signal: AbortSignal): Promise<DebuggingAnswer> {
    const { method = '', headers, url = '' } = request;
    const { json, name, key, isOfLease } = place;
    if (isOfLease) return { json: await answerLease(request, name, () => this.#named.get(key)) };
    if (json === undefined) throw new Refusal(426, 'This is the address of a WebSocket.');
    if (!DEBUGGING.test(json)) throw new Refusal(404, NO_PATH);
    expectMethod({ method, json });
    // The name of this host by which the client came here leads it here again.
    const host = headers.host?.includes(':') ? headers.host : this.#host;
    const address = `ws://${host}${this.#prefix}${name === undefined ? '' : `/${name}`}`;
    if (json === '/protocol') return { json: readProtocol() };
    const { share, connectTimeout } = this.#plan.settings;
    if (!share) return { json: describe(json, address) };
    const query = url.split('?').slice(1).join('?');
    const browser = this.#browserOf(place);
    if (!browser.isLeased) this.#plan.emit({ type: 'waiting', ...(name !== undefined && { name }) });
    let answer: DebuggingAnswer | undefined;
    await browser.serve({ protocol: 'cdp', signal, extension: undefined }, async (socket) => {
      const late = () => new Refusal(502, `The browser did not respond within ${duration(connectTimeout)}.`);
      const asking = () => askBrowser(socket, { method, json, query, address });
      answer = await raceAbort(raceTimeout(connectTimeout, asking, late), signal);
      return false;
    });
    return answer!;
  }

  /** Reads the path of a request. @throws Refusal */
  #placeOf({ headers, url = '/', socket }: IncomingMessage, servesExtensions = false): Place {
    // Without a secret, any extension of this machine could be the client.
    const isExtension = servesExtensions && this.#prefix !== '';
    const fault = sourceFault(headers, this.#host, isExtension) ?? this.#pageFault(headers);
    if (fault !== undefined) throw new Refusal(403, fault);
    const path = url.split('?', 1)[0]!;
    const { length } = this.#prefix;
    if (!isSameSecret(path.slice(0, length), this.#prefix)) throw new Refusal(404, NO_SECRET);
    this.#loopback.trust(socket);
    const rest = path.slice(length);
    // Some clients put the path of the address before that of webSocketDebuggerUrl, which begins with it already.
    const isTwice = length > 0 && rest.startsWith(`${this.#prefix}/`);
    const own = isTwice ? rest.slice(length) : rest;
    const endpoint = this.#plan.endpoints.find(({ path: first }) => own.split('/')[1] === first);
    const parts = PATH.exec(endpoint ? own.slice(endpoint.path.length + 1) : own)?.groups;
    const { name, bidi, page, json, lease, handoff } = parts ?? {};
    const isOfNamed = lease !== undefined || handoff !== undefined;
    const isOfDebugging = isOfNamed || [bidi, page, json].some((part) => part !== undefined);
    if (!parts || (isOfNamed && name === undefined)) throw new Refusal(404, NO_PATH);
    if (endpoint && isOfDebugging) throw new Refusal(404, notOfDebugging(endpoint.path));
    const key = this.#plan.settings.share ? '' : name;
    return {
      name,
      key,
      protocol: bidi === undefined ? 'cdp' : 'bidi',
      page,
      json,
      isOfLease: lease !== undefined,
      isHandoff: handoff !== undefined,
      endpoint,
      extension: extensionOf(headers),
    };
  }

  /** Without a secret, only these headers distinguish a page from a program: GET of another site has no Origin, and leases a browser. */
  #pageFault({ origin, 'sec-fetch-site': site = 'none' }: IncomingHttpHeaders): string | undefined {
    if (this.#prefix !== '') return undefined;
    return origin !== undefined || site !== 'none' ? 'Requests of pages are refused.' : undefined;
  }

  /** @throws Refusal */
  #expectServed(endpoint: ProxyEndpoint, request?: IncomingMessage): void {
    const fault = endpoint.fault(this.#prefix !== '') ?? (request && endpoint.refuses(request));
    if (fault) throw new Refusal(fault.status, fault.reason);
  }

  /** Checks what can be refused before a browser is leased. @throws Refusal */
  #expectClient({ json, isOfLease, isHandoff, protocol, endpoint }: Place, request: IncomingMessage): void {
    if (json !== undefined || isOfLease || isHandoff) throw new Refusal(404, NO_PATH);
    if (protocol === 'bidi' && this.#allowed) throw new Refusal(400, NO_BIDI);
    if (!isWebSocket(request)) throw new Refusal(400, 'Only WebSockets are served here.');
    if (endpoint) this.#expectServed(endpoint, request);
  }

  /** Leases a browser for a client, and only then answers. Serves the client until it has disconnected. */
  async #upgrade(request: IncomingMessage, connection: Duplex, head: Buffer): Promise<void> {
    const { emit, settings } = this.#plan;
    const { idleTimeout, connectTimeout } = settings;
    const waiting = new WaitingClient(connection, head);
    const { signal } = waiting;
    let named = {};
    let client: WebSocket | undefined;
    try {
      const place = this.#placeOf(request, true);
      if (place.name !== undefined) named = { name: place.name };
      this.#expectClient(place, request);
      this.#waiting.add(waiting);
      const { protocol, extension } = place;
      const isExtension = extension !== undefined;
      const browser = await this.#findBrowser(place, signal);
      if (!browser.isLeased) emit({ type: 'waiting', ...named });
      const serve = isExtension ? 'serveExtension' : 'serve';
      await browser[serve]({ protocol, extension, signal }, async (socket, sessionId) => {
        const onClose = () => closeClient(client!, 'Closed.', NORMAL);
        const opening = async () => openRoute(socket, place, { onClose, signal, allowed: this.#allowed });
        const late = () => new Refusal(502, `The page did not respond within ${duration(connectTimeout)}.`);
        const opened = raceTimeout(connectTimeout, opening, late);
        const { upstream, channel, close } = await raceAbort(opened, signal, (route) => void route.close());
        try {
          client = await waiting.accept(request);
          this.#waiting.delete(waiting);
          this.#connected++;
          emit({ type: 'connected', ...named, sessionId });
          const lastHandoff = () => browser.lastHandoff;
          const longest = isExtension ? Infinity : idleTimeout;
          const how = { channel, over: browser.over, idleTimeout: longest, lastHandoff };
          const isIdle = await serveClient(client, upstream, how);
          this.#connected--;
          browser.isBeingLeft = true;
          emit({ type: 'disconnected', ...named, sessionId, isIdle });
          return isIdle;
        } finally {
          await close();
        }
      });
    } catch (error) {
      waiting.stop();
      if (client || signal.aborted || connection.destroyed) return void connection.destroy();
      const { status, message } = refusalOf(error);
      refuseUpgrade(connection, status, { headers: PLAIN_TEXT, body: `${message}\n` });
      emit({ type: 'refused', ...named, status, reason: message });
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  /** @throws Refusal */
  async #findBrowser(place: Place, signal: AbortSignal): Promise<ProxiedBrowser> {
    if (place.extension !== undefined) return this.#browserWithExtension(place);
    await this.#awaitLastClient(place.key, signal);
    const { notLeased } = this.#plan;
    if (notLeased !== undefined && !this.#named.has(place.key)) throw new Refusal(404, notLeased);
    return this.#browserOf(place);
  }

  /** Returns the browser of a client: a new one, or the one of its name. @throws Refusal */
  #browserOf({ name, key, protocol, lifetime }: Wanted): ProxiedBrowser {
    if (this.#closed) throw new Refusal(503, 'The proxy has ended.');
    if (this.#isInUse(key))
      throw new Refusal(
        409,
        `Another client uses the browser "${name}". Disconnect it, or choose another name.`,
      );
    const known = this.#named.get(key);
    if (known) return known;
    const replaced = key === undefined ? undefined : this.#ended.get(key);
    if (key !== undefined) this.#ended.delete(key);
    const browser = new ProxiedBrowser(this.#plan, { name, protocol, replaced, lifetime });
    this.#browsers.add(browser);
    void browser.ended.then(() => this.#browsers.delete(browser));
    if (key === undefined) return browser;
    this.#named.set(key, browser);
    browser.over.addEventListener('abort', () => {
      this.#named.delete(key);
      this.#noteEnd(key, browser.over.reason);
    });
    return browser;
  }

  /** Returns the browser whose client has loaded an extension that connects. None is leased for it. @throws Refusal */
  #browserWithExtension({ key, protocol, endpoint }: Place): ProxiedBrowser {
    if (key === undefined) throw new Refusal(409, UNNAMED_EXTENSION);
    const browser = endpoint || protocol !== 'cdp' ? undefined : this.#named.get(key);
    if (!browser) throw new Refusal(403, NOT_LOADED);
    return browser;
  }

  /** Waits a moment for the last client of the name. */
  async #awaitLastClient(key: Place['key'], signal: AbortSignal): Promise<void> {
    const began = clock.now();
    const longest = () => (this.#named.get(key)?.isBeingLeft ? LONGEST_CLIENT_CHANGE : CLIENT_CHANGE);
    while (this.#isInUse(key) && clock.now() - began < longest()) await delay(LOOK, signal);
  }

  #isInUse(key: Place['key']): boolean {
    return !this.#plan.settings.share && (this.#named.get(key)?.clients ?? 0) > 0;
  }

  #noteEnd(key: string, reason: unknown): void {
    const { idleTimeout } = this.#plan.settings;
    if (reason === IDLE)
      this.#ended.set(key, `was released after ${duration(idleTimeout)} without a command`);
    else if (reason instanceof LeaseExpiredError) this.#ended.set(key, expiredAfter(reason.lifetime));
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > MOST_ENDED) this.#ended.delete(oldest!);
  }
}

function isWebSocket({ method, headers }: IncomingMessage): boolean {
  const isUpgrade = headers.upgrade?.toLowerCase() === 'websocket';
  const hasKey = /^[\w+/]{22}==$/.test(headers['sec-websocket-key'] ?? '');
  const isKnown = /^(8|13)$/.test(headers['sec-websocket-version'] ?? '');
  return method === 'GET' && isUpgrade && hasKey && isKnown;
}

const PLAIN_TEXT = { 'content-type': 'text/plain; charset=utf-8' };

const UNNAMED_EXTENSION =
  'An extension connects to a browser that another program uses, and needs its name: give the program, for example Stagehand, an address ' +
  'with a name, ADDRESS/NAME.';

const NO_SECRET =
  'The path must begin with the secret of the address. To serve without a secret: --no-secret, or secret: false.';

/** Opens the way between a client and its browser. @throws Refusal */
async function openRoute(
  socket: ClientSocket,
  place: Place,
  { onClose, ...how }: Omit<OpenRouteOptions, 'isNamed'> & { onClose: () => void },
): Promise<ProxyRoute> {
  const { endpoint, name } = place;
  if (endpoint) return endpoint.open(socket, { isNamed: name !== undefined, ...how });
  return { upstream: socket, channel: await openChannel(socket, place, onClose), close: async () => {} };
}

async function openChannel(
  socket: ClientSocket,
  { protocol, page }: Place,
  onClose: () => void,
): Promise<Channel> {
  if (protocol === 'bidi' || page === undefined) return channelOf(socket, protocol, onClose);
  const client = socket as Client;
  const session = await openPageSession(client, page === ANY_PAGE ? undefined : page).catch((error) => {
    throw new Refusal(404, `The browser has no page "${page}": ${(error as Error).message}`);
  });
  void session.detached.then(onClose);
  return channelOf(session, protocol, onClose);
}

/** The paths below `/json` of a debugging port. */
const DEBUGGING = /^(\/(version|list|protocol|new|(activate|close)\/[\w-]+))?$/;

const NEEDS_SHARE =
  'This request needs a browser that all clients share: --share of the command proxy, or share: true.';

/** The responses of a debugging port, of which each connection leases a browser of its own. */
function describe(json: string, address: string): unknown {
  if (json === '/version')
    return { Browser: 'Chrome', 'Protocol-Version': '1.3', webSocketDebuggerUrl: address };
  if (json !== '' && json !== '/list') throw new Refusal(404, NEEDS_SHARE);
  const page = {
    id: ANY_PAGE,
    type: 'page',
    title: 'A page of the browser that a connection leases',
    url: 'about:blank',
  };
  return [{ ...page, webSocketDebuggerUrl: `${address}/devtools/page/${ANY_PAGE}` }];
}

/** The description of the protocol is in a package that puppeteer-core installs. */
function readProtocol(): unknown {
  try {
    const { resolve } = createRequire(import.meta.url);
    const load = createRequire(resolve('puppeteer-core'));
    const [browser, js] = ['browser', 'js'].map(
      (part) =>
        load(`devtools-protocol/json/${part}_protocol.json`) as { version: object; domains: object[] },
    );
    return { version: browser!.version, domains: [...browser!.domains, ...js!.domains] };
  } catch {
    throw new Refusal(
      501,
      'The description of the protocol is in puppeteer-core. Install it: npm install puppeteer-core',
    );
  }
}

/** For a client whose protocol the browser does not have. */
const ADDRESSES =
  'Here, the path that ends with /session is the address of WebDriver BiDi. All others, also those of Playwright, need CDP: use a ' +
  'pool of Chromium for them.';

function refusalOf(error: unknown): { status: number; message: string } {
  if (error instanceof Refusal) return error;
  if (error instanceof AcquireTimeoutError || error instanceof PoolClosedError)
    return { status: 503, message: error.message };
  if (error instanceof InvalidOptionError) {
    const advice = error.option === 'protocol' ? ` ${ADDRESSES}` : '';
    return { status: 501, message: error.message + advice };
  }
  if (isPooledBrowserError(error)) return { status: 502, message: error.message };
  return { status: 500, message: 'Internal error.' };
}

/** The URLs that a client may reach. Undefined: all. */
function reachableUrls({ allowedHosts, exposeNetwork }: ProxySettings): RegExp | undefined {
  if (allowedHosts === undefined) return undefined;
  return patternOf(
    readHosts(exposeNetwork === undefined ? allowedHosts : `${allowedHosts},${exposeNetwork}`),
  );
}
