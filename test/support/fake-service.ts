import type { IncomingMessage, ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { kernel, type BrowserService, type BrowserSession } from '../../src/services.js';
import { Site } from './site.js';

export const TOKEN = 'canary-token-0123456789';
export const JWT = 'canary-jwt-0123456789';
/** The given API without the search for the browser of a lost response, before which the library makes a pause. */
const { find: _search, ...WITHOUT_SEARCH } = kernel;
/**
 * An address at which nothing listens: systems never assign this port, and fetch allows it. The port of a closed server
 * could soon belong to the server of another test.
 */
export const UNREACHABLE = 'http://127.0.0.1:2';

/** A request that the service received. */
export interface SeenRequest {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  // The body as the client sent it. A test that reads it declares its type.
  body: Record<string, unknown> | undefined;
  /** Milliseconds since the service started. */
  at: number;
}

/** A response: a status with a body, or a function that writes the response itself. */
export type Answer =
  | { status: number; json?: unknown; text?: string; headers?: Record<string, string>; delay?: number }
  | Played;

type Played = (response: ServerResponse, request: SeenRequest) => void | Promise<void>;

export type Route =
  | 'acquire'
  | 'release'
  | 'flush'
  | 'session'
  | 'replays'
  | 'start-replay'
  | 'stop-replay'
  | 'download'
  | 'pool'
  | 'search';

/**
 * A small HTTP server that simulates the service and its faults. Each route answers from its script, and repeats the
 * last answer. The server records requests, leases and releases.
 */
export class FakeService implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  /** Number of TCP connections so far, and of those that are open now. */
  readonly connections = { made: 0, open: 0 };
  readonly #scripts = new Map<Route, Answer[]>();
  /** Name and tags of the last lease, by session id. */
  readonly #leases = new Map<unknown, object>();
  readonly #site = new Site((request, response) => void this.#serve(request, response));
  readonly #started = performance.now();
  #closed: Promise<void> | undefined;

  static async start(): Promise<FakeService> {
    const service = new FakeService();
    const { server } = service.#site;
    server.on('connection', (socket) => {
      service.connections.made++;
      service.connections.open++;
      socket.on('close', () => service.connections.open--);
    });
    // With Node's 5 s, a busy machine could lose a connection between two requests of a test.
    server.keepAliveTimeout = 600_000;
    await service.#site.listen();
    service.script('acquire', { status: 200, json: session() });
    service.script('release', { status: 204 });
    service.script('flush', { status: 204 });
    service.script('session', (response, { path }) =>
      reply(response, { status: 200, json: service.leaseOf(path.split('/').at(-1)!) }),
    );
    service.script('replays', { status: 200, json: [] });
    service.script('start-replay', {
      status: 201,
      json: { replay_id: 'replay-1', started_at: '2026-01-02T03:04:05Z' },
    });
    service.script('stop-replay', { status: 204 });
    service.script('pool', { status: 200, json: { id: 'pool-1', name: 'pool' } });
    return service;
  }

  get baseUrl(): string {
    return this.#site.url;
  }

  /** Options for a `BrowserPool` at this service. A test of the search adds `service: kernel`. */
  get options(): { baseUrl: string; token: string; service: BrowserService<BrowserSession> } {
    return { baseUrl: this.baseUrl, token: TOKEN, service: WITHOUT_SEARCH };
  }

  /** Sets the answers of a route, one per request. The last one repeats. */
  script(route: Route, ...answers: Answer[]): void {
    this.#scripts.set(route, answers);
  }

  /** The requests of one route, in order. */
  of(route: Route): SeenRequest[] {
    return this.requests.filter(({ method, path }) => routeOf(method, path) === route);
  }

  /** Session ids that were released, in order. */
  get released(): unknown[] {
    return this.of('release').map(({ body }) => body?.['session_id']);
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#site[Symbol.asyncDispose]());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readText(incoming);
    const { method = '', url: path = '', headers } = incoming;
    const body = text === '' ? undefined : (JSON.parse(text) as Record<string, unknown>);
    const request: SeenRequest = { method, path, headers, body, at: performance.now() - this.#started };
    // Without a script, the service has no search for the browser of a lost acquire response.
    if (routeOf(method, path) === 'search' && !this.#scripts.has('search')) {
      return void response.writeHead(404).end();
    }
    this.requests.push(request);
    const script = this.#scripts.get(routeOf(method, path)!);
    const answer = script && (script.length > 1 ? script.shift() : script[0]);
    if (!answer) response.writeHead(500).end(`no script for ${method} ${path}`);
    else if (typeof answer === 'function') await answer(response, request);
    else reply(response, this.#echo(request, answer));
  }

  /** A session with the name and the tags of its last lease. */
  leaseOf(sessionId: string): Record<string, unknown> {
    return session({ session_id: sessionId, ...this.#leases.get(sessionId) });
  }

  /** The service shows name and tags of the acquire request with the session. */
  #echo({ method, path, body }: SeenRequest, answer: Exclude<Answer, Played>): Exclude<Answer, Played> {
    if (routeOf(method, path) !== 'acquire' || !body || !isSession(answer.json)) return answer;
    const { name, tags } = body;
    const lease = { ...(name !== undefined && { name }), ...(tags !== undefined && { tags }) };
    this.#leases.set(answer.json['session_id'], lease);
    return { ...answer, json: { ...lease, ...answer.json } };
  }
}

/** The answer to a search with these sessions, which have the tags of its query. */
export function found(...ids: string[]): Played {
  return (response, { path }) => {
    const query = new URL(path, 'http://service').searchParams;
    const tags = Object.fromEntries([...query].map(([name, value]) => [/\[(.*)\]/.exec(name)?.[1], value]));
    reply(response, { status: 200, json: ids.map((session_id) => ({ session_id, tags })) });
  };
}

function isSession(json: unknown): json is Record<string, unknown> {
  return typeof json === 'object' && json !== null && 'session_id' in json;
}

// The service answers also while a test has fake timers.
const { setTimeout: startTimer } = globalThis;

/** Sends an answer, after its delay. */
export function reply(response: ServerResponse, answer: Exclude<Answer, Played>): void {
  const { status, json, text, headers, delay = 0 } = answer;
  const type = json === undefined ? {} : { 'content-type': 'application/json' };
  startTimer(() => {
    response.writeHead(status, { ...type, ...headers });
    response.end(json === undefined ? text : JSON.stringify(json));
  }, delay);
}

function routeOf(method: string, path: string): Route | undefined {
  if (method === 'POST' && /^\/browser_pools\/[^/]+\/(acquire|release|flush)$/.test(path)) {
    return path.split('/').at(-1) as Route;
  }
  if (/^\/browsers\/[^/]+\/replays$/.test(path)) return method === 'GET' ? 'replays' : 'start-replay';
  if (method === 'POST' && /^\/browsers\/[^/]+\/replays\/[^/]+\/stop$/.test(path)) return 'stop-replay';
  if (method === 'GET' && /^\/browsers\/[^/]+\/replays\/[^/]+$/.test(path)) return 'download';
  if (method === 'GET' && /^\/browsers\/[^/]+$/.test(path)) return 'session';
  if (method === 'GET' && /^\/browser_pools\/[^/]+$/.test(path)) return 'pool';
  if (method === 'GET' && path.startsWith('/browsers?')) return 'search';
  return undefined;
}

/** A session with all required fields of the API. */
export function session(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    session_id: 'session-1',
    created_at: '2026-01-02T03:04:05Z',
    cdp_ws_url: `ws://127.0.0.1:1/cdp?jwt=${JWT}`,
    webdriver_ws_url: `ws://127.0.0.1:1/session?jwt=${JWT}`,
    headless: true,
    stealth: false,
    timeout_seconds: 60,
    ...fields,
  };
}
