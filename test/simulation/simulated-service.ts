import { AsyncLocalStorage } from 'node:async_hooks';
import type { HttpRequest } from '../../src/net/http.js';
import type { Reachability } from '../../src/net/reachability.js';
import type { OpenResponse } from '../../src/net/response.js';
import { isRecord } from '../../src/shared/json.js';
import { SimulatedBrowser } from './simulated-browser.js';
import { SimulatedReplays } from './simulated-replays.js';
import type { Shape } from './simulated-services.js';
import { SimulatedSocket } from './simulated-socket.js';
import type { World } from './world.js';

/** A lease in the records of the service, with which the library's reports are compared. */
export interface Grant {
  sessionId: string;
  /** Number of the call that requested it. */
  call: number;
  state: 'leased' | 'released' | 'expired';
  /** True after the library has read the session id. */
  isKnown: boolean;
  /** True after the session id has arrived, perhaps in a list whose end is missing: the library may use it, and need not. */
  mayBeKnown: boolean;
  /** True after the library has read the confirmation of the release. */
  isConfirmed: boolean;
  browser: SimulatedBrowser;
  hasProfile: boolean;
  /** Tags of the acquire request, which the service shows with the session until the lease ends. */
  tags: unknown;
  /** The acquire request, for the search of its session. */
  request: string;
  /** The library has searched for it. */
  isSearched: boolean;
  /** When it began, by the service's clock. */
  beganAt: number;
  /** Id of the recording that the service started on its own. */
  ownReplay: string | undefined;
}

/** How a call uses its browser, as far as the end of the lease depends on it. */
export interface Use {
  release: unknown;
  context: 'default' | 'new';
}

/** The number of the call that sends a request. */
export const sender = new AsyncLocalStorage<number>();

interface Answer {
  status: number;
  json?: unknown;
  text?: string;
  headers?: Record<string, string>;
  /** Called with the text of the response when it is read. */
  onRead?: (text: string) => void;
  /** Called with the whole text if nothing has cut the response off. */
  onEnd?: (text: string) => void;
}

interface Request {
  method: string;
  path: string;
  json: Record<string, unknown>;
  signal: AbortSignal;
  /** Number of the call that sent the request. */
  call: number | undefined;
  reachability: Reachability;
}

interface Waiting extends Pick<Grant, 'call' | 'tags' | 'request'> {
  grant: (answer: Answer | undefined) => void;
}

interface Habits {
  shape: Shape;
  size: number;
  /** Whether a browser keeps its session id from lease to lease, as at the public service. */
  keepsIds: boolean;
  /** Whether a session shows the tags of its lease. */
  showsTags: boolean;
  /** Whether a session can be found by its acquire request. */
  searches: boolean;
  /** Whether responses have a date. */
  sendsDates: boolean;
  hasProfiles: boolean;
}

const TIMEOUT_STATUSES = [204, 204, 204, 408, 409, 504];

/**
 * The service in memory, with the network in front of it. It leases browsers first come, first served, records every
 * lease, and fails as the world's faults require.
 */
export class SimulatedService {
  readonly grants: Grant[] = [];
  readonly uses = new Map<number, Use>();
  requests = 0;
  readonly #world: World;
  readonly #habits: Habits;
  readonly #browsers = new Map<string, SimulatedBrowser>();
  readonly #idle: string[];
  readonly replays: SimulatedReplays;
  readonly #waiting: Waiting[] = [];
  /** Number of the acquire requests of each call whose responses are not complete. */
  readonly #searched = new Set<string>();
  readonly #acquiring = new Map<number, number>();
  #sessions = 0;
  #unavailableUntil = 0;

  constructor(world: World, habits: Habits) {
    this.#world = world;
    this.#habits = habits;
    this.replays = new SimulatedReplays(world);
    this.#idle = Array.from({ length: habits.size }, () => this.#newSession());
  }

  /** Replaces the connections, which report whether they could be opened. */
  send(message: HttpRequest, signal: AbortSignal, reachability: Reachability): Promise<OpenResponse> {
    const { method = 'GET', url, body = {} } = message;
    const path = url.pathname + url.search;
    const json = structuredClone(body) as Record<string, unknown>;
    return this.#request({ method, path, json, signal, reachability, call: sender.getStore() });
  }

  get shape(): Shape {
    return this.#habits.shape;
  }

  get searches(): boolean {
    return this.#habits.searches;
  }

  get sendsDates(): boolean {
    return this.#habits.sendsDates;
  }

  /** The service leases the same session again. */
  get leasesAgain(): boolean {
    return this.shape === 'kernel';
  }

  acquiring(call: number): number {
    return this.#acquiring.get(call) ?? 0;
  }

  /** The present lease of a browser. */
  leaseOf(sessionId: string): Grant | undefined {
    return this.grants.findLast((grant) => grant.sessionId === sessionId && grant.state === 'leased');
  }

  /** Connects to the only browser, without a lease. */
  connect(): SimulatedSocket {
    const call = sender.getStore()!;
    const browser = this.#browsers.get('browser') ?? new SimulatedBrowser(this.#world);
    this.#browsers.set('browser', browser);
    for (const { grant } of browser.sockets)
      if (grant.call !== call)
        this.#world.violate(`call ${call} connected to the browser that call ${grant.call} uses`);
    const grant = this.#record('browser', { call, tags: undefined, request: '', browser });
    grant.isKnown = true;
    return new SimulatedSocket(this.#world, grant, () => (grant.state = 'released'));
  }

  /** Checks a browser that the next lease receives, or that the library reports as reused. */
  checkClean(browser: SimulatedBrowser, call: number): void {
    const { release } = this.uses.get(call) ?? {};
    const traces = release === 'auto' ? browser.tracesOf(call) : [];
    if (traces.length > 0) this.#world.violate(`call ${call} left ${traces.join()} for the next lease`);
  }

  /** Checks a browser without a service, which its earlier leases could not always clean. */
  checkReceived(browser: SimulatedBrowser, call: number): void {
    for (const other of this.uses.keys()) if (other !== call) this.checkClean(browser, other);
  }

  /** Ends the lease by inactivity. */
  expire(grant: Grant): void {
    if (grant.state !== 'leased' || this.shape === 'cdp') return;
    grant.state = 'expired';
    this.replays.endLease(grant);
    this.#world.tell(`service: ${grant.sessionId} expires`);
    this.#refill(this.#newSession());
  }

  #newSession(): string {
    return `s${++this.#sessions}`;
  }

  #request(request: Request): Promise<OpenResponse> {
    const { path, signal, call } = request;
    this.requests++;
    if (this.shape === 'cdp')
      this.#world.violate(`call ${call} sent a request, which a browser has no service for`);
    if (isRelease(request)) this.#checkNotConfirmed(request);
    if (isAcquire(request)) this.#countAcquiring(request, 1);
    const search = searchedIn(path);
    const searched = this.grants.find(({ request: id }) => id === search);
    if (search !== undefined) this.#searched.add(search);
    if (searched) searched.isSearched = true;
    const exchanged = new Promise<OpenResponse>((resolve, reject) => {
      const hangUp = () => reject(signal.reason as Error);
      signal.addEventListener('abort', hangUp, { once: true });
      const stopListening = () => signal.removeEventListener('abort', hangUp);
      void this.#travel(request).finally(stopListening).then(resolve, reject);
    });
    const isOver = () => isAcquire(request) && this.#countAcquiring(request, -1);
    exchanged.then(isOver, isOver);
    return exchanged;
  }

  #countAcquiring({ json: { tags } }: Request, change: 1 | -1): void {
    const call = Number((tags as { call: string }).call);
    this.#acquiring.set(call, this.acquiring(call) + change);
  }

  /** A release is not repeated after its confirmation. A nested call can get the same session again, before or after it. */
  #checkNotConfirmed(request: Request): void {
    const { call } = request;
    const sessionId = sessionIn(request);
    const own = this.grants.filter((grant) => grant.sessionId === sessionId && grant.call === call);
    if (own.length > 0 && own.every(({ isConfirmed }) => isConfirmed))
      this.#world.violate(`call ${call} released ${sessionId} again, after its confirmation`);
  }

  async #travel(request: Request): Promise<OpenResponse> {
    const { clock, random } = this.#world;
    const strikes = this.#world.strikes.bind(this.#world);
    const never = new Promise<never>(() => {});
    await clock.sleep(random.between(0, 5));
    if (strikes('http: refused')) throw unsent(request, 'ECONNREFUSED');
    if (strikes('http: broken handshake')) throw unsent(request, 'ECONNRESET');
    request.reachability.connected();
    if (strikes('http: reset before processing')) throw networkError('ECONNRESET');
    if (strikes('http: no answer')) return never;
    await clock.sleep(strikes('http: slow') ? random.between(500, 60_000) : random.between(1, 40));
    const releases = isRelease(request);
    // A service that starts to process a request after its client has disconnected is not safe to use: the late request
    // looks like a second one.
    if (releases && request.signal.aborted) return never;
    const isMarked =
      !this.leasesAgain || (this.#habits.showsTags && releases && this.#isMarked(sessionIn(request)));
    this.#world.tell(`  ${request.method} ${request.path}`);
    const answer = this.#refusal(request) ?? (await this.#serve(request));
    await clock.sleep(strikes('http: slow') ? random.between(500, 60_000) : random.between(1, 40));
    if (strikes('http: reset after processing')) throw networkError('ECONNRESET');
    if (strikes('http: no answer, but processed')) return never;
    // The library trusts a service that reports a failed release of a lease without a mark.
    if ((isMarked || !releases) && strikes('http: 500, but processed'))
      return this.#respond({ status: 500, text: 'oh' }, request);
    return this.#respond(answer, request);
  }

  #isMarked(sessionId: string): boolean {
    const { tags } = this.leaseOf(sessionId) ?? {};
    return isRecord(tags) && 'pooled-browser-lease' in tags;
  }

  /** A response that changes nothing. */
  #refusal(request: Request): Answer | undefined {
    const { random } = this.#world;
    const strikes = this.#world.strikes.bind(this.#world);
    if (strikes('http: 401')) return { status: 401, json: { code: 'unauthorized', message: 'no' } };
    // For a session, 404 means that it no longer exists, so it never comes while the session exists.
    const isSession = isRelease(request) || /^\/browsers\/[^/?]+$/.test(request.path);
    if (!isSession && strikes('http: 404'))
      return { status: 404, json: { code: 'not_found', message: 'no' } };
    if (strikes('http: 429')) {
      return { status: 429, text: '', headers: { 'retry-after': String(random.between(0, 90)) } };
    }
    if (strikes('http: 500')) return { status: 500, text: 'oh' };
    if (strikes('http: 503')) return { status: 503, text: 'later' };
    if (strikes('http: redirect')) return { status: 302, headers: { location: 'https://elsewhere.sim/' } };
    return undefined;
  }

  async #serve(request: Request): Promise<Answer> {
    const { method, path } = request;
    if (isAcquire(request)) return this.#acquire(request);
    if (isRelease(request)) return this.#release(request);
    const search = searchedIn(path);
    if (search !== undefined) return this.#find(search);
    const [, session, replays, replay] =
      /^\/browsers\/([^/]+)(\/replays)?(?:\/([^/]+)\/stop)?$/.exec(path) ?? [];
    if (session && replays) return this.#serveReplays(request, session, replay);
    if (session && this.#habits.showsTags) return this.#describe(session);
    if (method === 'GET') return { status: 200, json: { id: 'pool', name: 'pool' } };
    return { status: 404, text: '' };
  }

  #acquire({ json, signal }: Request): Promise<Answer> {
    const { acquire_timeout_seconds: wait = 30, tags } = json;
    const call = Number((tags as { call: string }).call);
    const request = String(json['request'] ?? (tags as Record<string, string>)['pooled-browser-lease']);
    const { clock, random } = this.#world;
    const tooSoon = this.#world.strikes('acquire: answered too early');
    const noticesHangUp = !this.#world.strikes('acquire: granted after the client disconnected');
    return new Promise((resolve) => {
      const sessionId = this.#idle.shift();
      if (sessionId) return resolve(this.#grant(sessionId, { call, tags, request }));
      if (this.shape === 'own') return resolve({ status: 429, json: { message: 'no browser now' } });
      const waiting: Waiting = {
        call,
        tags,
        request,
        grant: (answer) => {
          stopWaiting();
          if (answer) resolve(answer);
        },
      };
      const stopWaiting = clock.after(tooSoon ? 1 : (wait as number) * 1000, () => {
        this.#leave(waiting);
        resolve({ status: random.pick(TIMEOUT_STATUSES), text: '' });
      });
      this.#waiting.push(waiting);
      if (noticesHangUp) this.#leaveWhenGone(waiting, signal);
    });
  }

  /** Returns false if the request no longer waits. */
  #leave(waiting: Waiting): boolean {
    const index = this.#waiting.indexOf(waiting);
    if (index !== -1) this.#waiting.splice(index, 1);
    return index !== -1;
  }

  /** Some services remove disconnected clients from their queue. */
  #leaveWhenGone(waiting: Waiting, signal: AbortSignal): void {
    this.#world.clock.after(5000, () => {
      if (!this.#waiting.includes(waiting)) return;
      if (!signal.aborted) return this.#leaveWhenGone(waiting, signal);
      this.#leave(waiting);
      waiting.grant(undefined);
    });
  }

  #grant(sessionId: string, waiting: Omit<Waiting, 'grant'>): Answer {
    const browser = this.#browsers.get(sessionId) ?? new SimulatedBrowser(this.#world);
    this.#browsers.set(sessionId, browser);
    const grant = this.#record(sessionId, { ...waiting, browser });
    // Some services record on their own.
    if (this.shape !== 'own' && this.#world.random.chance(0.2))
      grant.ownReplay = this.replays.start(grant).replay_id;
    this.#world.tell(`service: ${sessionId} granted to call ${grant.call}`);
    const isMissing = this.#world.strikes('http: field missing');
    const session =
      this.shape === 'own' ? { data: ownSessionOf(sessionId, isMissing) } : sessionOf(grant, isMissing);
    const headers = this.sendsDates && { headers: { date: this.#world.date.toUTCString() } };
    const json = { ...session, ...(this.#habits.showsTags && { tags: grant.tags }) };
    return { status: 200, json, ...headers, onRead: (text) => this.#learn(grant, text) };
  }

  #record(sessionId: string, facts: Pick<Grant, 'call' | 'tags' | 'request' | 'browser'>): Grant {
    const outset = {
      state: 'leased',
      isKnown: false,
      mayBeKnown: false,
      isConfirmed: false,
      ownReplay: undefined,
    } as const;
    const hasProfile = this.#habits.hasProfiles;
    const isSearched = this.#searched.has(facts.request);
    const beganAt = this.#world.date.getTime();
    const grant: Grant = { ...outset, beganAt, ...facts, sessionId, hasProfile, isSearched };
    this.grants.push(grant);
    return grant;
  }

  /** The library has read this text. */
  #learn(grant: Grant, text: string): void {
    if (text.includes(`"session_id":"${grant.sessionId}"`)) grant.isKnown = true;
  }

  #find(request: string): Answer {
    if (!this.#habits.searches) return { status: 404, text: 'no such path' };
    const found = this.grants.filter((grant) => grant.request === request && grant.state === 'leased');
    const tags = { 'pooled-browser-lease': request };
    const list = found.map(({ sessionId }) => ({ session_id: sessionId, tags }));
    const json = this.shape === 'own' ? { data: list } : list;
    const note = (grant: Grant, text: string) => (grant.mayBeKnown ||= text.includes(grant.sessionId));
    return {
      status: 200,
      json,
      onRead: (text) => found.forEach((grant) => note(grant, text)),
      onEnd: (text) => found.forEach((grant) => this.#learn(grant, text)),
    };
  }

  #describe(sessionId: string): Answer {
    const exists = this.#idle.includes(sessionId) || this.leaseOf(sessionId);
    if (!exists) return { status: 404, json: { code: 'not_found', message: 'no such session' } };
    const tags = this.leaseOf(sessionId)?.tags;
    this.#world.tell(`service: ${sessionId} is shown`);
    return { status: 200, json: { session_id: sessionId, ...(tags !== undefined && { tags }) } };
  }

  #release(request: Request): Answer {
    const { json, call } = request;
    const { clock, random } = this.#world;
    if (this.#world.strikes('release: temporarily unavailable')) {
      this.#unavailableUntil = clock.now + random.between(100, 20_000);
    }
    if (clock.now < this.#unavailableUntil || this.#world.rates.has('release: never available')) {
      return { status: 503, text: 'no releases now' };
    }
    const grant = this.leaseOf(sessionIn(request));
    if (!grant) return { status: 404, json: { code: 'not_found', message: 'no such session' } };
    if (grant.call !== call)
      this.#world.violate(`call ${call} released ${grant.sessionId}, which is leased to call ${grant.call}`);
    return this.#giveBack(grant, json['reuse'] === true);
  }

  #giveBack(grant: Grant, reuse: boolean): Answer {
    const { sessionId } = grant;
    grant.state = 'released';
    this.replays.endLease(grant);
    this.#world.tell(`service: ${sessionId} of call ${grant.call} released${reuse ? '' : ', destroyed'}`);
    if (grant.browser.sockets.size > 0 || !(grant.isKnown || grant.mayBeKnown))
      this.#world.violate(`call ${grant.call} released ${sessionId} while a socket to its browser was open`);
    if (reuse && this.leasesAgain) {
      this.checkClean(grant.browser, grant.call);
      if (grant.hasProfile && grant.browser.isCleared)
        this.#world.violate(
          `call ${grant.call} cleared the profile of ${sessionId}, and released it for reuse`,
        );
    }
    this.#refill(reuse && this.#habits.keepsIds ? sessionId : this.#newSession());
    return { status: 204, text: '', onRead: () => (grant.isConfirmed = true) };
  }

  async #serveReplays(
    { method, call }: Request,
    sessionId: string,
    replayId: string | undefined,
  ): Promise<Answer> {
    const lease = this.leaseOf(sessionId);
    if (method === 'GET') {
      const { list, arriveIn } = this.replays.list(sessionId);
      const own = lease?.call === call ? lease : undefined;
      return { status: 200, json: list, ...(own && { onEnd: () => arriveIn(own) }) };
    }
    if (replayId !== undefined) {
      this.replays.stop(replayId);
      return { status: 204, text: '' };
    }
    if (this.#world.strikes('recording: refused')) return { status: 403, text: 'not in your plan' };
    if (this.#world.strikes('recording: slow'))
      await this.#world.clock.sleep(this.#world.random.between(1000, 40_000));
    const present = this.leaseOf(sessionId);
    if (!present) return { status: 404, text: '' };
    return { status: 201, json: this.replays.start(present) };
  }

  #refill(sessionId: string): void {
    const next = this.#waiting.shift();
    if (next) next.grant(this.#grant(sessionId, next));
    else this.#idle.push(sessionId);
  }

  #respond(answer: Answer, request: Request): OpenResponse {
    const strikes = this.#world.strikes.bind(this.#world);
    const isJson = answer.json !== undefined;
    const { status: statusCode } = answer;
    let text = isJson ? JSON.stringify(answer.json) : (answer.text ?? '');
    let type = isJson ? 'application/json' : 'text/plain';
    let error: Error | undefined;
    if (statusCode === 200 && strikes('http: web page')) [text, type] = ['<html>hello', 'text/html'];
    if (statusCode === 200 && strikes('http: empty')) text = '';
    if (statusCode === 200 && strikes('http: broken body')) {
      text = text.slice(0, this.#world.random.between(0, text.length));
      error = networkError('UND_ERR_SOCKET');
    }
    const body = this.#body(text, answer, request, error);
    return { statusCode, headers: { 'content-type': type, ...answer.headers }, body: body as never };
  }

  async *#body(
    text: string,
    { onRead, onEnd }: Answer,
    request: Request,
    error?: Error,
  ): AsyncGenerator<Buffer> {
    const { clock, random } = this.#world;
    const { signal } = request;
    const isSlow = this.#world.strikes('http: dripping body');
    const isEndless = this.#world.strikes('http: endless body');
    const size = isSlow ? random.between(1, 200) : text.length;
    let read = '';
    if (isAcquire(request)) this.#countAcquiring(request, 1);
    try {
      for (let at = 0; at < text.length; at += size) {
        await raceSignal(clock.sleep(isSlow ? random.between(1, 3000) : 1), signal);
        const chunk = text.slice(at, at + size);
        read += chunk;
        onRead?.(read);
        yield Buffer.from(chunk);
      }
      if (isEndless) await raceSignal(new Promise(() => {}), signal);
      if (error) throw error;
      if (text === '') onRead?.('');
      onEnd?.(read);
    } finally {
      if (isAcquire(request)) this.#countAcquiring(request, -1);
    }
  }
}

function isAcquire({ method, path }: Request): boolean {
  return method === 'POST' && (path.endsWith('/acquire') || path === '/sessions');
}

function isRelease({ method, path }: Request): boolean {
  return path.endsWith('/release') || method === 'DELETE';
}

/** The session that a request releases. */
function sessionIn({ path, json }: Request): string {
  return String(json['session_id'] ?? path.split('/').at(-1));
}

/** The acquire request whose session a request searches for. */
function searchedIn(path: string): string | undefined {
  return /^\/(?:browsers|sessions)\?.*=(.+)$/.exec(path)?.[1];
}

function raceSignal(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error);
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    void work.then(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    });
  });
}

/** The error of a connection that could not be opened. */
function unsent({ reachability }: Request, code: string): Error {
  const error = networkError(code);
  reachability.failed(error);
  return error;
}

function networkError(code: string): Error {
  return Object.assign(new Error(`network: ${code}`), { code });
}

const JWT = 'jwt=simulated-jwt-0123456789';

function sessionOf({ sessionId, hasProfile }: Grant, isMissing: boolean): object {
  return {
    session_id: sessionId,
    created_at: '2026-01-02T03:04:05Z',
    cdp_ws_url: `wss://browsers.sim/${sessionId}?${JWT}`,
    webdriver_ws_url: `wss://browsers.sim/${sessionId}/session?${JWT}`,
    headless: true,
    ...(!isMissing && { stealth: false }),
    ...(hasProfile && { profile: { id: 'profile' } }),
    timeout_seconds: 60,
  };
}

function ownSessionOf(sessionId: string, isMissing: boolean): object {
  return { session_id: sessionId, ...(!isMissing && { url: `wss://browsers.sim/${sessionId}?${JWT}` }) };
}
