import type { LoadDrivers, OpenConnection } from '../drivers/connection.js';
import type { Connector, Isolation, Workspace } from '../drivers/connector.js';
import type { ConnectExtension, Opening } from '../drivers/extension.js';
import type { PoolCore } from '../pool/pool-core.js';
import type { Grant } from '../services/browser-service.js';
import { requestFactsOf } from '../services/check-service.js';
import { meaningOf } from '../net/status.js';
import { LinkedAbort, raceAbort } from '../shared/abort.js';
import { backoff, clock, delay, startTimer } from '../shared/clock.js';
import { asError, InvalidOptionError } from '../shared/errors.js';
import { isRecord } from '../shared/json.js';
import {
  BrowserLostError,
  ConnectError,
  ConnectionDroppedError,
  LeaseExpiredError,
  LeaseOverError,
  type LossReason,
} from '../shared/lease-errors.js';
import type { LeaseContext } from './context.js';
import type { LeaseStep } from './events.js';
import type { Hooks } from './hooks.js';
import type { LeasePlan } from './plan.js';
import { writeFiles } from './write-files.js';

/** The event `session-expiring` is emitted this time before the end of the session, in ms, or after half of its time. */
const EXPIRY_WARNING = 10_000;

interface LinkedCall {
  readonly plan: Pick<LeasePlan, 'addedNames' | 'loadDrivers'>;
  readonly hooks: Pick<Hooks<never>, 'connect'>;
}

/** Pauses between two attempts to connect again, and after connections that broke at once. */
const RECONNECT = { factor: 2, minTimeout: 200, maxTimeout: 2000, randomize: true };
/** A connection that lasts less, in ms, may break because it is there: a service can throw out the older one of two. */
const BRIEF = 2000;
/** Time in ms to connect again to a session whose service does not say how long the session lasts without a connection. */
const LONGEST_RECONNECT = 300_000;

/**
 * Opens a connection for the WebSocket and imports the library while the acquire request, if there is one, waits. The import
 * keeps the process busy, so it starts after the request is sent. Rejects if the library is missing.
 */
export async function prepareConnect(
  { client, service }: PoolCore,
  connector: Connector,
  loadDrivers: LoadDrivers,
): Promise<void> {
  const { connections, spare } = await client.host.open();
  if (requestFactsOf(service).hasAcquireRequest) await connections.connected;
  spare.prepare();
  await Promise.all([connector.load(), loadDrivers()]);
}

/**
 * The connection of a lease. With the option `reconnect` a lost connection is replaced; the calls that were using it fail
 * and are not repeated. Without it the browser is lost with its connection.
 */
export class Link<Handles> {
  readonly #lease: LeaseContext<LeaseStep>;
  readonly #connect: Connect<Handles>;
  /** Aborts with the lease: no connection is opened after its end. */
  readonly #abort: LinkedAbort;
  #connection: OpenConnection<Handles>;
  /** Aborts when the present connection ends, or with the lease. */
  #current: LinkedAbort;
  #renewing: Promise<void> | undefined;
  /** When the present connection began, and how many before it broke at once, one after the other. */
  #since = 0;
  #brief = 0;
  /** Warns before the service ends a session without a connection. */
  #expiry: NodeJS.Timeout | undefined;
  #isClosed = false;

  static async open<Handles>(
    lease: LeaseContext,
    connector: Connector<Handles>,
    { plan, hooks }: LinkedCall,
  ): Promise<Link<Handles>> {
    const { addedNames = ['session', 'signal'], loadDrivers } = plan;
    const extend = (opening: Opening) => hooks.connect(lease, opening);
    const connect = connectionsOf(lease, connector, loadDrivers, extend);
    const connection = await connect(lease.signal);
    const { handles } = connection;
    const taken = addedNames.find((name) => isRecord(handles) && Object.hasOwn(handles, name));
    if (taken === undefined) return new Link(lease, connect, connection);
    connection.cut();
    const message = `The connector ${connector.library} has a handle ${taken}, which is a name of this library. Rename the handle.`;
    throw new InvalidOptionError('connector', message);
  }

  private constructor(
    lease: LeaseContext<LeaseStep>,
    connect: Connect<Handles>,
    connection: OpenConnection<Handles>,
  ) {
    this.#lease = lease;
    this.#connect = connect;
    this.#abort = new LinkedAbort(lease.signal);
    this.#connection = connection;
    this.#current = this.#watch(connection);
  }

  /** The present connection, or the last one. */
  get connection(): OpenConnection<Handles> {
    return this.#connection;
  }

  /** Waits for a connection and calls `fn` with its handles. Rejects if that connection ends. */
  async use<Value>(fn: (handles: Handles) => Value | PromiseLike<Value>): Promise<Value> {
    if (this.#isClosed) throw overError(this.#lease);
    if (this.#current.signal.aborted) await this.renew();
    const { signal } = this.#current;
    const connection = this.#connection;
    const work = (async () => fn(connection.handles))();
    work.catch((error: unknown) => this.explain(error, connection));
    return raceAbort(work, signal);
  }

  /** Replaces the connection, whether or not it has ended. */
  async renew(): Promise<void> {
    if (this.#isClosed) throw overError(this.#lease);
    this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined));
    return this.#renewing;
  }

  /** Opens a page for tasks. */
  async openWorkspace(isolation: Isolation, contextOptions?: object): Promise<Workspace<Handles>> {
    const connection = this.#connection;
    if (connection.openWorkspace) return connection.openWorkspace(isolation, contextOptions);
    const message = 'The connector has no openWorkspace, which mapPooledBrowsers needs.';
    throw new InvalidOptionError('connector', message);
  }

  /** Adds to the message of an error of the library. Never throws: the caller's error passes unchanged. */
  explain(error: unknown, connection = this.#connection): void {
    try {
      connection.explain?.(error);
    } catch {
      // The message stays as it is.
    }
  }

  /** Checks the library's side, which detects earlier than the socket that the callback closed the connection. */
  check(): void {
    if (!this.#current.signal.aborted && !this.#connection.isConnected()) this.#lose('closed-by-callback');
  }

  /** Ends the link: a connection that ends from now on was closed by this library. */
  close(): void {
    this.#isClosed = true;
    clock.clearTimeout(this.#expiry);
    const over = overError(this.#lease);
    for (const abort of [this.#abort, this.#current]) {
      abort.abort(over);
      abort.dispose();
    }
    const { host } = this.#lease.pool.client;
    host.open().then(
      ({ spare }) => spare.renew(),
      () => {},
    );
  }

  #watch(connection: OpenConnection<Handles>): LinkedAbort {
    clock.clearTimeout(this.#expiry);
    this.#since = clock.now();
    void connection.ended.then((end) => {
      if (connection === this.#connection && end !== 'closed-by-us') this.#onEnded(end);
    });
    return new LinkedAbort(this.#lease.signal);
  }

  #onEnded(reason: LossReason): void {
    if (this.#isClosed || this.#current.signal.aborted) return;
    const { settings, grant } = this.#lease;
    const { reconnect } = settings;
    const isOver =
      reason === 'expired' || reason === 'closed-by-callback' || grant.endsWithConnection === true;
    if (!reconnect || isOver) return this.#lose(reason);
    this.#brief = clock.now() - this.#since < BRIEF ? this.#brief + 1 : 0;
    this.#current.abort(new ConnectionDroppedError(this.#facts));
    this.#lease.emit({ type: 'connection-dropped', sessionId: this.#lease.sessionId, reason });
    this.#warnBeforeExpiry();
    // `#lose` reports a failure.
    if (reconnect === 'eager') this.renew().catch(() => {});
  }

  async #renew(): Promise<void> {
    const { sessionId, emit } = this.#lease;
    const { signal } = this.#abort;
    signal.throwIfAborted();
    expectKeptSession(this.#lease, 'reconnect');
    const pageUrl = this.#connection.pageUrl?.();
    this.#current.abort(new ConnectionDroppedError(this.#facts));
    this.#current.dispose();
    // The connection may still be open.
    await writeFiles(this.#lease, this.#connection);
    this.#connection.cut();
    // The next connection would let their new pages go on.
    await this.#connection.endPages().catch(() => {});
    const connection = await this.#reconnect(pageUrl);
    if (signal.aborted) connection.cut();
    signal.throwIfAborted();
    this.#connection = connection;
    this.#current = this.#watch(connection);
    emit({ type: 'reconnected', sessionId });
  }

  /** Connects again, with retries while the session may last. */
  async #reconnect(pageUrl: string | undefined): Promise<OpenConnection<Handles>> {
    const { signal } = this.#abort;
    const { grant } = this.#lease;
    const { idleTimeout = LONGEST_RECONNECT } = grant;
    const began = clock.now();
    if (this.#brief > 1) await delay(backoff(RECONNECT, this.#brief - 1), signal);
    for (let failures = 1; ; failures++) {
      try {
        return await this.#connect(signal, pageUrl, { ...grant, ...grant.reconnect });
      } catch (cause) {
        signal.throwIfAborted();
        const isOver = cause instanceof ConnectError && meaningOf(cause.status ?? 0).endsSession;
        const pause = backoff(RECONNECT, failures);
        if (isOver || clock.now() - began + pause > idleTimeout) {
          this.#lose(isOver ? 'expired' : 'dropped', cause);
          throw this.#lease.signal.reason;
        }
        await delay(pause, signal);
      }
    }
  }

  #warnBeforeExpiry(): void {
    const { grant, emit, sessionId } = this.#lease;
    const { idleTimeout = Number.POSITIVE_INFINITY } = grant;
    const timeLeft = Math.min(EXPIRY_WARNING, idleTimeout / 2);
    const warn = () => emit({ type: 'session-expiring', sessionId, timeLeft });
    clock.clearTimeout(this.#expiry);
    // The timer must not keep the process alive.
    this.#expiry = startTimer(idleTimeout - timeLeft, warn)?.unref();
  }

  #lose(reason: LossReason, cause?: unknown): void {
    if (this.#isClosed) return;
    clock.clearTimeout(this.#expiry);
    const { sessionId, emit, pool } = this.#lease;
    const { lossAdvice } = pool.service;
    const isOurs = reason === 'closed-by-callback';
    const message = [LOSSES[reason], !isOurs && lossAdvice].filter(Boolean).join(' ');
    const error = new BrowserLostError(message, reason, { ...this.#facts, cause });
    emit({ type: 'browser-lost', sessionId, error });
    this.#lease.abort(error);
  }

  get #facts() {
    return { pool: this.#lease.pool.idOrName, sessionId: this.#lease.sessionId };
  }
}

type Connect<Handles> = ReturnType<typeof connectionsOf<Handles>>;

/** Returns the function that opens each connection of a lease. */
function connectionsOf<Handles>(
  lease: LeaseContext<LeaseStep>,
  connector: Connector<Handles>,
  loadDrivers: LoadDrivers,
  extend: (opening: Opening) => readonly Promise<ConnectExtension | undefined>[],
) {
  const { settings, emit, pool, sessionId, addError } = lease;
  const reported = new Set<string>();
  /** Reports each kind of event once. */
  const onMalformed = (name: string) => {
    if (reported.has(name)) return;
    reported.add(name);
    const message = `The browser sent an event ${name} that can not be read. It was dropped.`;
    addError(new ConnectError(message, { sessionId }));
  };
  const onPagesClosed = (urls: string[]) => emit({ type: 'unresponsive-pages-closed', sessionId, urls });
  const connect = async (signal: AbortSignal, pageUrl?: string, grant: Grant = lease.grant) => {
    emit({ type: 'connecting', sessionId, library: connector.library, protocol: settings.protocol });
    try {
      const { host, trust } = pool.client;
      const { spare } = await host.open();
      const drivers = await loadDrivers();
      const connection = await drivers.connectSession(connector, grant, {
        settings,
        trust,
        spare,
        pageUrl,
        signal,
        extend,
        onMalformed,
        state: lease.state,
        onPagesClosed,
      });
      emit({ type: 'connected', sessionId });
      return connection;
    } catch (error) {
      emit({ type: 'connect-failed', sessionId, error: asError(error) });
      throw error;
    }
  };
  return (...how: Parameters<typeof connect>) => lease.time('connect', () => connect(...how));
}

const LOSSES: Readonly<Record<LossReason, string>> = {
  dropped: 'The browser was lost: its connection broke, or the other side stopped answering.',
  'closed-by-service':
    'The browser was lost: the other side closed the connection. The browser may have ended.',
  expired: 'The browser was lost: its session expired.',
  'closed-by-callback':
    'The browser was lost: the callback closed the browser or its connection. The library closes it after the callback.',
};

/** What a call after the end of the lease throws. */
export function overError(
  { pool, sessionId, signal }: Pick<LeaseContext, 'pool' | 'sessionId' | 'signal'>,
  cause?: unknown,
): LeaseOverError {
  const why = signal.reason instanceof LeaseExpiredError ? ` ${signal.reason.message}` : '';
  return new LeaseOverError(`The lease has ended.${why}`, { pool: pool.idOrName, sessionId, cause });
}

/** Throws if the session ends with its connection. */
export function expectKeptSession(
  { grant, pool }: Pick<LeaseContext, 'grant' | 'pool'>,
  action: string,
): void {
  if (grant.endsWithConnection !== true) return;
  throw new InvalidOptionError(
    action,
    `${action} is not possible: session ${grant.id} of the service ${pool.service.name} ends with its connection. ` +
      "If the service can keep sessions alive, pass reconnect: 'eager', or the option of the service.",
  );
}
