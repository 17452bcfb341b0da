import type { BrowserProtocol } from '../drivers/connector.js';
import { hasExtension } from '../clean/installed.js';
import { loadDrivers } from './load-drivers.js';
import { relay, type RelayHandles } from '../drivers/relay.js';
import { openInFirstPage } from '../wire/page-session.js';
import type { ClientSocket } from '../drivers/socket.js';
import { verifyGrant } from '../lease/verify-connection.js';
import type { HandoffAnswer } from '../features/handoff/options.js';
import { createFeatures, type PooledLease } from '../features/create-features.js';
import { attachLease } from '../lease/attach-lease.js';
import { openLease } from '../lease/open-lease.js';
import type { PoolList } from '../pool/browser-pool.js';
import { coreOf } from '../pool/pool-core.js';
import { LinkedAbort, onAbort, raceAbort, raceTimeout } from '../shared/abort.js';
import { clock, startTimer } from '../shared/clock.js';
import { duration } from '../shared/errors.js';
import { ConnectError, LeaseNameTakenError } from '../shared/lease-errors.js';
import { isNameConflict } from '../shared/service-errors.js';
import type { StepOf } from '../shared/telemetry.js';
import type { ProxyEvent, ProxySteps, RunEvent } from './events.js';
import { askPerson } from './handoff.js';
import { HandoffRequests } from './handoff-request.js';
import { adviceInside } from './nesting.js';
import type { KeptBrowsers, KeptOutcome, NotedLease } from './kept-browsers/kept-browsers.js';
import { Refusal } from '../net/loopback-server.js';
import type { RunSummary } from './run.js';
import type { ProxyEndpoint } from './proxy-endpoint.js';
import type { CallSettings } from '../lease/options.js';
import type { AllSettings, ProxySettings } from './options.js';

/** How the browsers of a proxy are leased, and how long they are kept. */
export interface ProxyPlan {
  readonly open: (how: ProxiedBrowserOptions) => Promise<Opened>;
  readonly settings: ProxySettings;
  readonly emit: (event: ProxyEvent) => void;
  /** The further protocols of clients. */
  readonly endpoints: readonly ProxyEndpoint[];
  /** Why a client is refused whose browser `ProxyServer.lease` has not leased. Undefined: one is leased for the client. */
  readonly notLeased: string | undefined;
  /** The secret in the address. If it is undefined, the secret is random, or there is none. */
  readonly ownSecret?: string | undefined;
  /** The browsers that outlive the proxy. Undefined: none. */
  readonly kept?: Pick<KeptBrowsers, 'note' | 'has' | 'remove' | 'close'> | undefined;
}

/** The options of one browser. `name` is that of the path. */
interface ProxiedBrowserOptions extends Pick<CallSettings, 'protocol' | 'reconnect' | 'signal' | 'name'> {
  /** In ms. Default: that of the proxy. */
  readonly lifetime?: number | undefined;
  readonly onStep: (step: LeaseStep) => void;
}

/** An event of the lease that clients cause. */
type LeaseStep = StepOf<Pick<ProxySteps, 'request-refused' | 'handoff' | 'handoff-answered'>>;

/** The first client of a browser, or what leases the browser before that client. */
interface FirstClient extends Pick<ProxiedBrowserOptions, 'lifetime'> {
  readonly name: string | undefined;
  readonly protocol: BrowserProtocol;
  /** How the browser that this one replaces has ended: follows "The one before it". */
  readonly replaced: string | undefined;
}

/** The reason of the end of a browser whose clients sent no command for `idleTimeout`. */
export const IDLE = new Error('The browser was idle.');
export const NOT_LOADED = 'An extension can connect only to a browser in which a client has loaded it.';
const NO_CLIENT = new Error('The client has disconnected.');

/** The part of a lease that a proxy uses. */
type Connected = Pick<PooledLease<RelayHandles>, 'handles' | 'end' | 'pause'> & NotedLease;

/** A lease, and what became of the browser of the same name that an earlier proxy has leased. */
interface Opened {
  readonly lease: Connected;
  readonly kept?: KeptOutcome<never>['kept'];
  /** How that browser has ended. */
  readonly why?: string;
}

/** In ms: the times of two moments are compared. */
const ROUNDING = 1000;

/** What a client receives about the lease of its browser. Times are in ms. */
export interface ProxiedLease {
  readonly sessionId: string;
  /** Since the browser was leased. */
  readonly age: number;
  /** Until the end by the option `lifetime`. Missing without the option. */
  readonly remaining?: number;
}

/** Leases browsers for the clients of a proxy. */
export function openFor<Session extends object>(
  pools: PoolList<Session>,
  settings: AllSettings<Session> & { readonly secret: boolean },
  kept?: KeptBrowsers<Session>,
): ProxyPlan['open'] {
  // Without a secret, a client can be another user's.
  const connector = relay(settings.secret);
  const planOf = async (
    { onStep, lifetime = settings.lifetime, ...how }: ProxiedBrowserOptions,
    further: Partial<AllSettings<Session>> = {},
  ) => {
    const onEvent = (event: RunEvent<Session>) => {
      const { type } = event;
      if (type === 'request-refused') onStep({ type, sessionId: event.sessionId, host: event.host });
      if (type === 'handoff')
        onStep({ type, sessionId: event.sessionId, url: event.url, message: event.message });
      if (type === 'handoff-answered') onStep({ type, sessionId: event.sessionId, status: event.status });
      settings.onEvent?.(event);
    };
    const own = { ...settings, ...how, lifetime, ...further, onEvent };
    return { connector, settings: own, features: await createFeatures(own), loadDrivers };
  };
  const open = async (how: ProxiedBrowserOptions, further?: Partial<AllSettings<Session>>) =>
    openLease({ ...(await planOf(how, further)), pools, advise: adviceInside() });
  // The lifetime is that of the file, which may have been extended.
  const reopen = (how: ProxiedBrowserOptions & { readonly name: string }) =>
    kept?.find(how.name, how.signal, async ({ pool, detachedState }) => {
      const plan = await planOf(how, {
        ...OUTLIVING,
        lifetime: Number.POSITIVE_INFINITY,
        maxLifetime: undefined,
      });
      return attachLease({ ...plan, pools: [pool.api] }, detachedState);
    });
  const services = pools.map((pool) => coreOf(pool).service);
  return async ({ name = settings.name, ...how }) => {
    // A client chose the name, which must not be the reason of a refusal.
    const isPath = name !== settings.name;
    if (!isPath) return { lease: await open({ ...how, name }) };
    const again = name === undefined ? undefined : await reopen({ ...how, name });
    if (again?.kept === 'found') return again;
    const further = kept && OUTLIVING;
    const isRefused = services.some(({ refuses }) => refuses?.({ name, tags: settings.tags }));
    const lease = await open({ ...how, name: isRefused ? undefined : name }, further).catch(
      (error: unknown) => {
        // Another proxy, or a browser that is being released, has the name of the path.
        const isTaken = error instanceof LeaseNameTakenError || isNameConflict(error);
        if (!isTaken || how.signal?.aborted) throw error;
        return open({ ...how, name: `${name}-${globalThis.crypto.randomUUID().slice(0, 6)}` }, further);
      },
    );
    return { lease, ...again };
  };
}

/** The options of browsers that outlive the proxy: the process that releases the others after a crash would end them. */
const OUTLIVING = { releaseOnCrash: false };

interface ServeClientOptions {
  readonly protocol: BrowserProtocol;
  /** Id of the browser extension that is the client. */
  readonly extension: string | undefined;
  readonly signal: AbortSignal;
}
type Use = (socket: ClientSocket, sessionId: string) => Promise<boolean>;

/**
 * The browser of one client of a proxy, or of the clients of one name, or of all, from the first of them to the release. If no
 * client is left before there is a browser, the wait ends.
 */
export class ProxiedBrowser {
  readonly name: string | undefined;
  /** Aborts when no client can use the browser any longer, with an Error that says why. */
  readonly over: AbortSignal;
  /** Resolves when the browser is released, with the result of its lease; undefined without a lease. */
  readonly ended: Promise<RunSummary<object> | undefined>;
  /** Its client has disconnected, and what served it is ending. */
  isBeingLeft = false;
  /** Number of clients that use the browser, or wait for it. */
  clients = 0;
  /** The requests of programs for a person. */
  readonly handoffs = new HandoffRequests((options, gone) => this.#handOff(options, gone));
  readonly #plan: ProxyPlan;
  /** Clients come one after the other, or many at once. */
  readonly #isKept: boolean;
  readonly #over = new LinkedAbort();
  readonly #waiting = new LinkedAbort();
  /** Aborts when the last client that is no extension has disconnected. */
  #used = new LinkedAbort();
  readonly #began = clock.now();
  readonly #lease: Promise<Connected>;
  #connected: Connected | undefined;
  #leasedAt = 0;
  #keeping: NodeJS.Timeout | undefined;
  #onEnded: (summary: RunSummary<object> | undefined) => void = () => {};
  #handoffs = 0;
  #lastHandoff = 0;

  constructor(plan: ProxyPlan, { name, protocol, replaced, lifetime }: FirstClient) {
    this.#plan = plan;
    this.name = name;
    this.#isKept = plan.settings.share || name !== undefined;
    this.over = this.#over.signal;
    this.ended = new Promise((resolve) => (this.#onEnded = resolve));
    this.#lease = this.#open({ protocol, lifetime }, replaced);
    this.#lease.catch((error: unknown) => this.end(error));
  }

  /**
   * Waits for the browser, and calls `use` with a socket to it. The last client releases the browser, now or later.
   *
   * @param use Resolves when the client has disconnected; to true if it sent no command for `idleTimeout`.
   */
  async serve(how: ServeClientOptions, use: Use): Promise<void> {
    this.clients++;
    this.isBeingLeft = false;
    clock.clearTimeout(this.#keeping);
    let isIdle = false;
    try {
      const lease = await raceAbort(this.#lease, how.signal);
      this.over.throwIfAborted();
      isIdle = this.#isKept
        ? await this.#serveApart(lease, how, use)
        : await use(lease.handles.socket, lease.context.sessionId);
    } finally {
      this.#leave(isIdle);
    }
  }

  /**
   * Serves an extension that a client has loaded in this browser, for as long as the browser has a client: an extension, which need not end,
   * keeps no browser.
   *
   * @throws Refusal
   */
  async serveExtension(how: ServeClientOptions, use: Use): Promise<void> {
    const lease = await raceAbort(this.#lease, how.signal);
    this.over.throwIfAborted();
    if (this.clients === 0) throw new Refusal(403, NOT_LOADED);
    await this.#serveApart(lease, how, use);
  }

  get isLeased(): boolean {
    return this.#connected !== undefined;
  }

  /** The lease; undefined before its beginning and after its end. */
  get lease(): ProxiedLease | undefined {
    if (!this.#connected || this.over.aborted) return undefined;
    const { context, features } = this.#connected;
    const { remaining } = features.lifetime;
    const age = Math.round(clock.now() - this.#leasedAt);
    return { sessionId: context.sessionId, age, ...(remaining !== undefined && { remaining }) };
  }

  /** The page that shows the browser. Its URL contains a secret. */
  get liveViewUrl(): string | undefined {
    return this.#connected?.context.grant.liveViewUrl;
  }

  /** Moves the end of its lease. Returns the ms until the new one, and whether that is the latest one, and earlier than asked for. */
  extend(ms: number): { readonly remaining: number; readonly isCut: boolean } {
    const lease = this.#connected!;
    const { lifetime } = lease.features;
    const asked = (lifetime.remaining ?? 0) + ms;
    const remaining = lifetime.facts.extend(ms);
    if (this.name !== undefined) void this.#plan.kept?.note(this.name, lease);
    return { remaining, isCut: remaining < asked - ROUNDING };
  }

  /** When a person used the browser last (`clock.now()`); 0 if none did. */
  get lastHandoff(): number {
    return this.#handoffs > 0 ? clock.now() : this.#lastHandoff;
  }

  /** Asks a person to use the browser, which is kept meanwhile. */
  async #handOff(options: unknown, signal: AbortSignal | undefined): Promise<HandoffAnswer> {
    const lease = await raceAbort(this.#lease, signal);
    this.over.throwIfAborted();
    this.#handoffs++;
    clock.clearTimeout(this.#keeping);
    try {
      return await askPerson(lease, options, { signal });
    } finally {
      this.#handoffs--;
      this.#lastHandoff = clock.now();
      this.#keep(false);
    }
  }

  /** Disconnects the clients and releases the browser, once. Never rejects. @param isLeft The browser stays leased if it is kept. */
  end(reason: unknown, isLeft = false): ProxiedBrowser['ended'] {
    if (!this.over.aborted) void this.#end(reason, isLeft).then(this.#onEnded);
    return this.ended;
  }

  /** Serves a client with a connection of its own: what it sets in the browser must not reach the next client. */
  async #serveApart(lease: Connected, how: ServeClientOptions, use: Use): Promise<boolean> {
    const { signal: used } = this.#used;
    const socket = await this.#openApart(lease, how);
    const cut = () => socket.cut('closed-by-us');
    // Before the browser is cleaned: the client may have paused its pages.
    const stopListening = onAbort(how.extension === undefined ? this.over : used, cut);
    return use(socket, lease.context.sessionId).finally(() => {
      stopListening();
      cut();
    });
  }

  async #openApart(
    { context: { pool, sessionId, grant }, handles }: Connected,
    { signal, protocol, extension }: ServeClientOptions,
  ): Promise<ClientSocket> {
    const { settings } = this.#plan;
    // The browser was leased for another client.
    verifyGrant(pool.idOrName, grant, { protocol, connector: relay(settings.secret) });
    const limit = new LinkedAbort(signal, settings.connectTimeout);
    try {
      const socket = await handles.openClient(limit.signal, protocol);
      if (extension === undefined) return socket;
      const isLoaded = await raceAbort(hasExtension(socket, extension), limit.signal).catch(() => false);
      if (isLoaded) return socket;
      socket.cut('closed-by-us');
      limit.signal.throwIfAborted();
      throw new Refusal(403, NOT_LOADED);
    } catch (error) {
      if (!limit.timedOut) throw error;
      const after = `${duration(settings.connectTimeout)} (option connectTimeout)`;
      throw new ConnectError(`The browser did not respond within ${after}.`, { sessionId });
    } finally {
      limit.dispose();
    }
  }

  #leave(isIdle: boolean): void {
    this.clients--;
    if (this.clients > 0) return;
    this.#used.abort(NO_CLIENT);
    this.#used = new LinkedAbort();
    this.#keep(isIdle);
  }

  /** Without a client and a person, the browser is kept for a while, or released. */
  #keep(isIdle: boolean): void {
    if (this.clients > 0 || this.#handoffs > 0 || this.over.aborted) return;
    if (isIdle) return void this.end(IDLE);
    if (!this.#isKept || !this.isLeased) return void this.end(NO_CLIENT);
    const { share, keep, idleTimeout } = this.#plan.settings;
    this.#keeping = share
      ? startTimer(idleTimeout, () => void this.end(IDLE))
      : startTimer(keep, () => void this.end(NO_CLIENT));
  }

  async #end(reason: unknown, isLeft: boolean): ProxiedBrowser['ended'] {
    clock.clearTimeout(this.#keeping);
    this.#over.abort(reason);
    this.#used.abort(reason);
    // Afterwards, this signal would make the browser look lost.
    if (!this.isLeased) this.#waiting.abort(reason);
    const lease = await this.#lease.catch(() => undefined);
    if (!lease) return undefined;
    const { signal, sessionId } = lease.context;
    const { aborted, reason: error } = signal;
    const { kept } = this.#plan;
    const isDetached = isLeft && !aborted && kept?.has(lease) === true;
    const summary = await lease.end(aborted ? { status: 'failed', error } : { status: 'ok', isDetached });
    if (!isDetached) await kept?.remove(lease);
    const elapsed = Math.round(clock.now() - this.#leasedAt);
    this.#emit({ type: 'released', sessionId, elapsed, summary });
    return summary;
  }

  async #open(
    how: Pick<ProxiedBrowserOptions, 'protocol' | 'lifetime'>,
    replaced: string | undefined,
  ): Promise<Connected> {
    const { open, settings } = this.#plan;
    const { signal } = this.#waiting;
    // The connection that holds a browser between its clients may break without a loss.
    const reconnect = this.#isKept ? 'eager' : false;
    const name = settings.share ? undefined : this.name;
    const onStep = (step: LeaseStep) => this.#emit(step);
    const { lease, kept, why = replaced } = await open({ ...how, reconnect, signal, name, onStep });
    this.#waiting.dispose();
    this.#connected = lease;
    const { sessionId, grant, signal: over } = lease.context;
    const now = clock.now();
    // An earlier proxy may have leased the browser.
    this.#leasedAt = now - (lease.features.lifetime.saved?.age ?? 0);
    const waited = Math.round(now - this.#began);
    const { liveViewUrl } = grant;
    const facts = { ...(liveViewUrl !== undefined && { liveViewUrl }), ...(kept && { kept }) };
    this.#emit({ type: 'leased', sessionId, waited, ...facts });
    onAbort(over, () => void this.end(over.reason));
    if (this.name !== undefined) await this.#plan.kept?.note(this.name, lease);
    const hasRoom = settings.startUrl === undefined && how.protocol === 'cdp';
    if (why !== undefined && hasRoom) await showNotice(lease.handles.socket, why);
    return lease;
  }

  #emit(event: ProxyEvent): void {
    this.#plan.emit({ ...event, ...(this.name !== undefined && { name: this.name }) });
  }
}

/**
 * Opens the first page of a browser that replaces another one. A tool that connects again by itself shows this page to its agent, which
 * would look for its pages otherwise. Never rejects: a browser without its notice is still a browser.
 *
 * @param why How the browser before it has ended.
 */
async function showNotice(socket: ClientSocket, why: string): Promise<void> {
  const text = `This is a new browser. The one before it ${why}: its pages and logins no longer exist.`;
  const notice = `data:text/html,${encodeURIComponent(`<title>New browser</title><p>${text}`)}`;
  const late = () => new Error('The page did not respond.');
  await raceTimeout(NOTICE_TIMEOUT, () => openInFirstPage(socket, notice), late).catch(() => {});
}

/** Time in ms for the notice. */
const NOTICE_TIMEOUT = 5000;
