import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { json as readBody } from 'node:stream/consumers';
import { WebSocket, WebSocketServer } from 'ws';
import type { BrowserService } from '../../src/index.js';
import {
  anchor,
  browserbase,
  browserless,
  browserUse,
  cloudflare,
  hyperbrowser,
  kernel,
  LEASE_TAG,
  steel,
  valueAt,
  webdriver,
} from '../../src/services.js';
import { TOKEN } from './fake-service.js';
import { answerOwnCommand } from './played-browser.js';
import { Site } from './site.js';

type Json = Record<string, unknown>;

/** A session of a contract server. */
export interface ContractSession {
  readonly id: string;
  /** The request that created it. */
  readonly body: Json;
  readonly createdAt: Date;
  readonly endedAt?: Date;
}

/**
 * What a service publishes about its API. A route is a method and a path, in which `:id` stands for the id of a session. Its
 * secrets begin with `canary-`.
 */
export interface Contract {
  readonly name: string;
  /** The name in `BROWSER_POOL_SERVICE`. */
  readonly service: BrowserService;
  /** The header, or the parameter of the query, that carries the key. */
  readonly key: { readonly header: string; readonly value?: string } | { readonly query: string };
  /** The route that creates a session. */
  readonly create: string;
  /** The route that releases a session. */
  readonly release: string;
  /** Other requests, most of which read, by their routes. A URL is a redirect. */
  readonly reads: Readonly<Record<string, (on: Reading) => unknown>>;
  /** The session, as the response that creates it shows it. */
  readonly session: (session: ContractSession, address: string) => unknown;
  /** The id that the client chose. */
  readonly idIn?: (body: Json) => string;
  /** Status of a release whose session does not exist. */
  readonly unknownId?: number;
  /** Waits instead of answering 429. */
  readonly queues?: boolean;
  /** A WebSocket needs the key, too. */
  readonly checksSockets?: boolean;
  /** The session ends with its last connection. */
  readonly endsWithConnection?: (body: Json) => boolean;
}

/** A read request. */
export interface Reading {
  /** The session that the path names; undefined is answered with 404. */
  readonly session: ContractSession | undefined;
  readonly all: readonly ContractSession[];
  readonly query: URLSearchParams;
  readonly address: string;
  /** How often this route was requested before. */
  readonly earlier: number;
  /** URL of the video, at another server. */
  readonly videoUrl: string;
  /** All requests so far, as method and path. */
  readonly requests: readonly string[];
}

const SECRET = 'canary-session-0123456789';
const iso = (date: Date | undefined) => date?.toISOString();
const isActive = ({ endedAt }: ContractSession) => !endedAt;

function browserbaseSession({ id, body, createdAt, endedAt }: ContractSession): Json {
  const { keepAlive = false, userMetadata = {} } = body;
  const status = endedAt ? 'COMPLETED' : 'RUNNING';
  const times = { createdAt: iso(createdAt), startedAt: iso(createdAt), endedAt: iso(endedAt) };
  return { id, keepAlive, userMetadata, ...times, status };
}

function steelSession({ id, createdAt, endedAt }: ContractSession, address: string): Json {
  return {
    id,
    createdAt: iso(createdAt),
    status: endedAt ? 'released' : 'live',
    duration: (endedAt ?? new Date()).getTime() - createdAt.getTime(),
    websocketUrl: `${address}/cdp`,
    debugUrl: `https://api.steel.dev/v1/sessions/${id}/player`,
    sessionViewerUrl: `https://app.steel.dev/sessions/${id}`,
  };
}

function hyperbrowserSession({ id, body, createdAt, endedAt }: ContractSession, address: string): Json {
  const { enableWebRecording = true, enableVideoWebRecording = false } = body;
  return {
    id,
    ...(endedAt && { endTime: endedAt.getTime() }),
    createdAt: iso(createdAt),
    sessionUrl: `https://app.hyperbrowser.ai/sessions/${id}`,
    launchState: { enableWebRecording, enableVideoWebRecording },
    wsEndpoint: `${address}/cdp?sessionId=${id}&token=${SECRET}`,
    liveUrl: `https://live.hyperbrowser.ai/?token=${SECRET}`,
    token: SECRET,
  };
}

function browserUseSession({ id, body, createdAt, endedAt }: ContractSession, address: string): Json {
  return {
    id,
    liveUrl: `https://live.browser-use.com/${id}`,
    // An http address that names its WebSocket.
    cdpUrl: `${address.replace(/^ws/, 'http')}/canary-host/${id}`,
    startedAt: iso(createdAt),
    finishedAt: iso(endedAt) ?? null,
    metadata: body['metadata'] ?? {},
  };
}

function kernelSession({ id, body, createdAt }: ContractSession, address: string): Json {
  return {
    session_id: id,
    created_at: iso(createdAt),
    cdp_ws_url: `${address}/cdp?sessionId=${id}&jwt=${SECRET}`,
    webdriver_ws_url: `${address}/session?sessionId=${id}&jwt=${SECRET}`,
    headless: false,
    stealth: false,
    timeout_seconds: 60,
    ...body,
  };
}

/** By the sources that the files of the services name. What they do not say is the simplest possible. */
export const CONTRACTS: readonly Contract[] = [
  {
    name: 'kernel:browsers',
    service: kernel({ create: {} }),
    key: { header: 'authorization', value: `Bearer ${TOKEN}` },
    create: 'POST /browsers',
    release: 'DELETE /browsers/:id',
    session: kernelSession,
    reads: {
      'GET /browsers': ({ all, query, address }) => {
        const tag = query.get(`tags[${LEASE_TAG}]`);
        return all
          .filter((one) => isActive(one) && (tag === null || valueAt(one.body, ['tags', LEASE_TAG]) === tag))
          .map((one) => kernelSession(one, address));
      },
      'GET /browsers/:id/replays': () => [],
    },
  },
  {
    name: 'browserbase',
    service: browserbase(),
    key: { header: 'x-bb-api-key' },
    create: 'POST /v1/sessions',
    release: 'POST /v1/sessions/:id',
    session: (session, address) => ({
      ...browserbaseSession(session),
      connectUrl: `${address}/cdp?sessionId=${session.id}&signingKey=${SECRET}`,
      signingKey: SECRET,
    }),
    endsWithConnection: ({ keepAlive }) => keepAlive !== true,
    reads: {
      'GET /v1/sessions': ({ all, query }) => {
        const [, key, value] = /^user_metadata\['(.+)'\]:'(.+)'$/.exec(query.get('q') ?? '') ?? [];
        const matches = ({ body }: ContractSession) => valueAt(body, ['userMetadata', key!]) === value;
        return all
          .filter((one) => (key === undefined ? isActive(one) : matches(one)))
          .map(browserbaseSession);
      },
      'GET /v1/sessions/:id': ({ session }) => session && browserbaseSession(session),
      // The times count from the beginning of the page.
      'GET /v1/sessions/:id/replays': () => ({
        pages: [{ pageId: 'page-1', startTimeMs: 0, endTimeMs: 1000 }],
      }),
      'POST /v1/sessions/:id/recording/downloads': () => ({
        downloads: [{ pageId: 'page-1', status: 'PENDING' }],
      }),
      'GET /v1/sessions/:id/recording/downloads': ({ earlier, videoUrl: downloadUrl }) => {
        const page = earlier === 0 ? { status: 'PENDING' } : { status: 'COMPLETED', downloadUrl };
        return {
          downloads: [
            { pageId: 'page-0', status: 'FAILED' },
            { pageId: 'page-1', ...page },
          ],
        };
      },
    },
  },
  {
    name: 'steel',
    service: steel(),
    key: { header: 'steel-api-key' },
    create: 'POST /v1/sessions',
    release: 'POST /v1/sessions/:id/release',
    session: steelSession,
    idIn: ({ sessionId }) => sessionId as string,
    reads: {
      'GET /v1/sessions/:id': ({ session, address }) => session && steelSession(session, address),
      'GET /v1/sessions': () => ({ sessions: [] }),
    },
  },
  {
    name: 'hyperbrowser',
    service: hyperbrowser(),
    key: { header: 'x-api-key' },
    create: 'POST /api/session',
    release: 'PUT /api/session/:id/stop',
    session: hyperbrowserSession,
    reads: {
      'GET /api/session/:id': ({ session, address }) => session && hyperbrowserSession(session, address),
      'GET /api/session/:id/video-recording-url': ({ session, earlier, videoUrl: recordingUrl }) => {
        if (session!.body['enableVideoWebRecording'] !== true) return { status: 'not_enabled' };
        return earlier === 0 ? { status: 'in_progress' } : { status: 'completed', recordingUrl };
      },
      'GET /api/sessions': () => ({ sessions: [] }),
    },
  },
  {
    name: 'anchor',
    service: anchor(),
    key: { header: 'anchor-api-key' },
    create: 'POST /v1/sessions',
    release: 'DELETE /v1/sessions/:id',
    // "Invalid API key or browser session ID".
    unknownId: 401,
    session: ({ id }, address) => ({
      data: {
        id,
        cdp_url: `${address}/cdp?apiKey=${TOKEN}&sessionId=${id}`,
        live_view_url: `https://live.anchorbrowser.io?sessionId=${id}`,
      },
    }),
    reads: {
      'GET /v1/sessions/:id/recordings': ({ session, requests }) => {
        if (requests.includes(`DELETE /v1/sessions/${session!.id}/recordings/recording-1`))
          return { data: { items: [] } };
        const file_link = 'https://api.anchorbrowser.io/recording.mp4';
        return { data: { items: [{ id: 'recording-1', file_link, created_at: iso(session!.createdAt) }] } };
      },
      'DELETE /v1/sessions/:id/recordings/recording-1': () => ({ data: { status: 'success' } }),
      'GET /v1/sessions/:id/recordings/primary/fetch': ({ videoUrl }) => new URL(videoUrl),
      'GET /v1/sessions/all/status': () => ({ data: { items: [] } }),
    },
  },
  {
    name: 'browser-use',
    service: browserUse(),
    key: { header: 'x-browser-use-api-key' },
    create: 'POST /browsers',
    release: 'PATCH /browsers/:id',
    session: browserUseSession,
    reads: {
      'GET /browsers': ({ all, query, address }) => {
        const [key, value] = query.get('metadata')?.split(':') ?? [];
        const matches = ({ body }: ContractSession) =>
          key === undefined || valueAt(body, ['metadata', key]) === value;
        const size = Number(query.get('pageSize') ?? 10);
        const begin = (Number(query.get('pageNumber') ?? 1) - 1) * size;
        const items = all.filter((one) => isActive(one) && matches(one)).slice(begin, begin + size);
        return { items: items.map((one) => browserUseSession(one, address)) };
      },
      'GET /browsers/:id': ({ session, address, videoUrl }) => {
        if (!session) return undefined;
        const recordingAvailable = session.body['enableRecording'] === true;
        const recordingUrl = session.endedAt && recordingAvailable ? videoUrl : null;
        return { ...browserUseSession(session, address), recordingAvailable, recordingUrl };
      },
      'GET /canary-host/:id/json/version': ({ session, address }) => ({
        webSocketDebuggerUrl: `${address}/cdp?sessionId=${session!.id}`,
      }),
    },
  },
  {
    name: 'cloudflare',
    service: cloudflare({ accountId: 'an-account' }),
    key: { header: 'authorization', value: `Bearer ${TOKEN}` },
    create: 'POST /devtools/browser',
    release: 'DELETE /devtools/browser/:id',
    checksSockets: true,
    // Nobody connects there.
    session: ({ id: sessionId }) => ({ sessionId, webSocketDebuggerUrl: 'wss://elsewhere.example.com' }),
    reads: { 'GET /devtools/session': () => [] },
  },
  {
    name: 'browserless sessions',
    service: browserless({ session: { ttl: 60_000 } }),
    key: { query: 'token' },
    create: 'POST /session',
    release: 'DELETE /session/:id',
    session: ({ id, body }, address) => ({
      id,
      connect: `${address}/cdp?sessionId=${id}&token=${TOKEN}`,
      stop: `https://production-sfo.browserless.io/session/${id}?token=${TOKEN}`,
      ttl: body['ttl'],
    }),
    reads: { 'GET /pressure': () => ({ pressure: { isAvailable: true } }) },
  },
  {
    name: 'selenium grid',
    service: webdriver(),
    key: { header: 'authorization', value: `Basic ${Buffer.from(TOKEN).toString('base64')}` },
    create: 'POST /session',
    release: 'DELETE /session/:id',
    queues: true,
    session: ({ id, body }) => ({
      value: {
        sessionId: id,
        capabilities: {
          ...(valueAt(body, ['capabilities', 'alwaysMatch']) as Json),
          // Addresses of the node, which clients can't reach.
          'se:cdp': `ws://172.17.0.2:4444/session/${id}/se/cdp`,
          webSocketUrl: `ws://172.17.0.2:4444/session/${id}/se/bidi`,
          'goog:chromeOptions': { debuggerAddress: 'localhost:36727' },
        },
      },
    }),
    reads: { 'GET /status': () => ({ value: { ready: true } }) },
  },
];

export function contractOf(name: string): Contract {
  return CONTRACTS.find((contract) => contract.name === name)!;
}

/** How to answer a request. */
type Answer = (response: ServerResponse) => void;

/** A server with the published API of a service. Without a browser, its CDP WebSocket plays one that is clean. */
export class ContractServer implements AsyncDisposable {
  readonly sessions: ContractSession[] = [];
  /** All requests, as method and path. */
  readonly requests: string[] = [];
  /** Releases that were answered with success, by session. */
  readonly released: string[] = [];
  /** Most sessions at once so far. */
  most = 0;
  /** How many sessions it has at once. */
  slots = 10;
  /** The key has expired. */
  isExpired = false;
  /** Answers to the next requests that create a session. */
  readonly refusals: Answer[] = [];
  /** Answers to the next requests of such routes, in place of those of the contract. */
  readonly faults: { readonly route: RegExp; readonly answer: Answer }[] = [];
  /** The response to the next one is lost, after the session was created. */
  losesNext = false;
  /** URL of the videos. */
  videoUrl = 'https://files.example.com/video.mp4';
  /** WebSocket URL of a real browser. */
  browserUrl: string | undefined;
  readonly contract: Contract;
  readonly #waiting: (() => void)[] = [];
  readonly #site = new Site((request, response) => void this.#serve(request, response));
  readonly #sockets = new WebSocketServer({ noServer: true });

  static async start(contract: Contract): Promise<ContractServer> {
    const server = new ContractServer(contract);
    server.#site.server.on('upgrade', (request, socket, head) =>
      server.#sockets.handleUpgrade(request, socket, head, (client) => server.#connect(client, request)),
    );
    await server.#site.listen();
    return server;
  }

  private constructor(contract: Contract) {
    this.contract = contract;
  }

  get baseUrl(): string {
    return this.#site.url;
  }

  get active(): ContractSession[] {
    return this.sessions.filter(isActive);
  }

  /** Ends a session, as its timeout does. */
  end(id: string): void {
    const at = this.sessions.findIndex((one) => one.id === id);
    this.sessions[at] = { ...this.sessions[at]!, endedAt: new Date() };
    for (const client of this.#sockets.clients)
      if ((client as { session?: string }).session === id) client.terminate();
    this.#waiting.shift()?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#sockets.clients) client.terminate();
    await this.#site[Symbol.asyncDispose]();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const hasBody = request.headers['content-type'] !== undefined;
    const body = hasBody ? ((await readBody(request)) as Json) : {};
    const { pathname, searchParams: query } = new URL(request.url!, this.baseUrl);
    const route = `${request.method} ${pathname}`;
    this.requests.push(route);
    const { create, release, reads, unknownId = 404 } = this.contract;
    const answer = (status: number, json: unknown) => answerWith(status, {}, json)(response);
    if (!route.includes('/canary-host/') && !this.#isAllowed(request, query))
      return answer(401, { message: 'Invalid API key' });
    if (route === create) return this.#create(body, response);
    if (this.faults[0]?.route.test(route)) return this.faults.shift()!.answer(response);
    const id = idOf(release, route);
    if (id !== undefined) {
      if (!this.active.some((one) => one.id === id)) return answer(unknownId, { message: 'No such session' });
      this.end(id);
      this.released.push(id);
      return answer(200, {});
    }
    const found = Object.entries(reads).find(([one]) => one === route || idOf(one, route) !== undefined);
    const session = found && this.sessions.find((one) => one.id === idOf(found[0], route));
    const json = found?.[1]({
      session,
      all: this.sessions,
      query,
      address: this.#socketAddress,
      earlier: this.requests.filter((one) => one === route).length - 1,
      videoUrl: this.videoUrl,
      requests: this.requests,
    });
    if (json instanceof URL) return answerWith(302, { location: json.href })(response);
    return json === undefined ? answer(404, { message: 'Not found' }) : answer(200, json);
  }

  async #create(body: Json, response: ServerResponse): Promise<void> {
    const { idIn, queues } = this.contract;
    const refuse = this.refusals.shift();
    if (refuse) return refuse(response);
    while (this.active.length >= this.slots) {
      if (!queues) return answerWith(429)(response);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    const session = { id: idIn?.(body) ?? randomUUID(), body, createdAt: new Date() };
    this.sessions.push(session);
    this.most = Math.max(this.most, this.active.length);
    if (this.losesNext) {
      this.losesNext = false;
      return void response.socket?.destroy();
    }
    answerWith(200, {}, this.contract.session(session, this.#socketAddress))(response);
  }

  get #socketAddress(): string {
    return this.baseUrl.replace(/^http/, 'ws');
  }

  #isAllowed({ headers }: IncomingMessage, query: URLSearchParams): boolean {
    const { key } = this.contract;
    if (this.isExpired) return false;
    return 'query' in key ? query.get(key.query) === TOKEN : headers[key.header] === (key.value ?? TOKEN);
  }

  /** A CDP connection of a session. */
  #connect(client: WebSocket, request: IncomingMessage): void {
    const { searchParams: query, pathname } = new URL(request.url!, this.baseUrl);
    const id = query.get('sessionId') ?? /^\/(?:session|devtools\/browser)\/([^/]+)/.exec(pathname)?.[1];
    const session = this.active.find((one) => one.id === id);
    if (this.contract.checksSockets && !this.#isAllowed(request, query)) return client.terminate();
    if (!session) return client.terminate();
    (client as { session?: string }).session = session.id;
    client.on('error', () => {});
    client.on('close', () => {
      const isLast = ![...this.#sockets.clients].some(
        (other) => other !== client && (other as { session?: string }).session === session.id,
      );
      const ends = this.contract.endsWithConnection?.(session.body) === true;
      if (ends && isLast && this.active.some((one) => one.id === session.id)) this.end(session.id);
    });
    if (this.browserUrl !== undefined) return relay(client, this.browserUrl);
    client.on('message', (data) => {
      const own = answerOwnCommand(String(data));
      if (own !== undefined) client.send(own);
    });
  }
}

/** The id in a path that a route with `:id` describes. */
function idOf(route: string, path: string): string | undefined {
  const [before, after] = route.split(':id');
  if (after === undefined || !path.startsWith(before!) || !path.endsWith(after)) return undefined;
  const id = path.slice(before!.length, path.length - after.length);
  return id.includes('/') ? undefined : id;
}

/** An answer with a status. */
export function answerWith(status: number, headers: Record<string, string> = {}, json: unknown = {}): Answer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(json));
  };
}

/** Connects a client with a browser. */
export function relay(client: WebSocket, url: string): void {
  const browser = new WebSocket(url);
  const early: string[] = [];
  client.on('message', (data) => {
    if (browser.readyState === WebSocket.OPEN) browser.send(String(data));
    else early.push(String(data));
  });
  browser.on('open', () => early.forEach((text) => browser.send(text)));
  browser.on('message', (data) => client.send(String(data)));
  browser.on('error', () => client.terminate());
  browser.on('close', () => client.close());
  client.on('close', () => browser.close());
}
