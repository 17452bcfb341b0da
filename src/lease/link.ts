import { connectSession, type OpenConnection } from '../connect/connect-session.js';
import type { Connector } from '../connect/connector.js';
import { INTERNALS } from '../service/pool-internals.js';
import { meaningOf } from '../service/status.js';
import { LinkedAbort, raceAbort, startTimer } from '../shared/abort.js';
import {
  BrowserLostError,
  ConnectError,
  ConnectionDroppedError,
  type LossReason,
} from '../shared/lease-errors.js';
import { withRetries } from '../shared/retry.js';
import type { Lease } from './lease.js';

/**
 * The event `session-expiring` is emitted this time before the end of the session, in ms, or after half of its time.
 */
const EXPIRY_WARNING = 10_000;

/**
 * The connection of a lease. With the option `reconnect` a lost connection is replaced; the calls that were using it fail
 * and are not repeated. Without it the browser is lost with its connection.
 */
export class Link<Handles> {
  readonly #lease: Lease;
  readonly #connector: Connector<Handles>;
  /** Aborts with the lease: no connection is opened after its end. */
  readonly #abort: LinkedAbort;
  readonly #expiry: ExpiryTimer;
  #connection: OpenConnection<Handles>;
  /** Aborts when the present connection ends, or with the lease. */
  #current: LinkedAbort;
  #renewing: Promise<void> | undefined;
  #isFirst: boolean;
  #isClosed = false;

  /** @param isAttached Whether another process was connected during this lease. */
  static async open<Handles>(
    lease: Lease,
    connector: Connector<Handles>,
    { isAttached = false } = {},
  ): Promise<Link<Handles>> {
    const connection = await connect(lease, connector, undefined, lease.call.signal);
    return new Link(lease, connector, connection, !isAttached);
  }

  private constructor(
    lease: Lease,
    connector: Connector<Handles>,
    connection: OpenConnection<Handles>,
    isFirst: boolean,
  ) {
    const { signal, emit } = lease.call;
    const { sessionId, session } = lease;
    this.#lease = lease;
    this.#connector = connector;
    this.#abort = new LinkedAbort(signal);
    this.#expiry = new ExpiryTimer(session.timeout_seconds * 1000, (timeLeft) =>
      emit({ type: 'session-expiring', sessionId, timeLeft }),
    );
    this.#connection = connection;
    this.#isFirst = isFirst;
    this.#current = new LinkedAbort(signal);
    this.#watch(connection);
  }

  /** The present connection, or the last one. */
  get connection(): OpenConnection<Handles> {
    return this.#connection;
  }

  /** False after a reconnect: the pages that were opened over the earlier connection are unknown. */
  get knowsAllPages(): boolean {
    return this.#isFirst;
  }

  /** Waits for a connection and calls `fn` with its handles. Rejects if that connection ends. */
  async use<Value>(fn: (handles: Handles) => Value | PromiseLike<Value>): Promise<Value> {
    if (this.#current.signal.aborted) await this.renew();
    const { signal } = this.#current;
    const work = (async () => fn(this.#connection.handles))();
    return raceAbort(work, signal);
  }

  /** Replaces the connection, whether or not it has ended. */
  renew(): Promise<void> {
    this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined));
    return this.#renewing;
  }

  /** Checks the library's side, which detects earlier than the socket that the callback closed the connection. */
  check(): void {
    if (!this.#current.signal.aborted && !this.#connection.isConnected()) this.#lose('closed-by-callback');
  }

  /** Ends the link: a connection that ends from now on was closed by this library. */
  close(): void {
    this.#isClosed = true;
    this.#expiry.stop();
    this.#abort.abort(new DOMException('The lease has ended', 'AbortError'));
    this.#abort.dispose();
    this.#current.dispose();
    this.#lease.call.pool[INTERNALS].client.service.spare.renew();
  }

  #watch(connection: OpenConnection<Handles>): void {
    void connection.ended.then((end) => {
      if (connection === this.#connection && end !== 'closed-by-us') this.#onEnded(end);
    });
  }

  #onEnded(reason: LossReason): void {
    if (this.#isClosed || this.#current.signal.aborted) return;
    const { reconnect } = this.#lease.call.settings;
    if (!reconnect || reason === 'expired' || reason === 'closed-by-callback') return this.#lose(reason);
    this.#current.abort(new ConnectionDroppedError(this.#facts));
    this.#lease.call.emit({ type: 'connection-dropped', sessionId: this.#lease.sessionId, reason });
    this.#expiry.start();
    // `#lose` reports a failure.
    if (reconnect === 'eager') this.renew().catch(() => {});
  }

  async #renew(): Promise<void> {
    const { call, sessionId } = this.#lease;
    const { signal } = this.#abort;
    signal.throwIfAborted();
    const pageUrl = this.#connection.pageUrl?.();
    this.#current.abort(new ConnectionDroppedError(this.#facts));
    this.#current.dispose();
    // The connection may still be open.
    this.#connection.cut();
    const connection = await this.#reconnect(pageUrl);
    if (this.#isClosed) connection.cut();
    signal.throwIfAborted();
    this.#connection = connection;
    this.#isFirst = false;
    this.#current = new LinkedAbort(call.signal);
    this.#expiry.stop();
    this.#watch(connection);
    call.emit({ type: 'reconnected', sessionId });
  }

  /** Connects again, with retries while the session may last. */
  async #reconnect(pageUrl: string | undefined): Promise<OpenConnection<Handles>> {
    const { signal } = this.#abort;
    let opened: OpenConnection<Handles> | undefined;
    const open = async () => (opened = await connect(this.#lease, this.#connector, pageUrl, signal));
    try {
      return await withRetries(open, {
        retries: Number.POSITIVE_INFINITY,
        maxRetryTime: this.#lease.session.timeout_seconds * 1000,
        minTimeout: 200,
        maxTimeout: 2000,
        randomize: true,
        signal,
        shouldRetry: ({ error }) => !isSessionOver(error),
      });
    } catch (cause) {
      // p-retry rejects after an abort even if the attempt has just succeeded.
      opened?.cut();
      signal.throwIfAborted();
      this.#lose(isSessionOver(cause) ? 'expired' : 'dropped', cause);
      throw this.#lease.call.signal.reason;
    }
  }

  #lose(reason: LossReason, cause?: unknown): void {
    if (this.#isClosed) return;
    this.#expiry.stop();
    const { call, sessionId } = this.#lease;
    const error = new BrowserLostError(LOSSES[reason], reason, { ...this.#facts, cause });
    call.emit({ type: 'browser-lost', sessionId, error });
    call.abort.abort(error);
  }

  get #facts() {
    return { pool: this.#lease.call.pool.idOrName, sessionId: this.#lease.sessionId };
  }
}

const LOSSES: Readonly<Record<LossReason, string>> = {
  dropped: 'The browser was lost: its connection broke, or the other side stopped answering.',
  'closed-by-service':
    'The browser was lost: the other side closed the connection. The browser may have ended.',
  expired: 'The browser was lost: its session expired.',
  'closed-by-callback':
    'The browser was lost: the callback closed the browser or its connection. The library closes it after the callback.',
};

function connect<Handles>(
  lease: Lease,
  connector: Connector<Handles>,
  pageUrl: string | undefined,
  signal: AbortSignal,
): Promise<OpenConnection<Handles>> {
  const { call, session, sessionId } = lease;
  const { settings, emit, pool } = call;
  const onPagesClosed = (urls: string[]) => emit({ type: 'unresponsive-pages-closed', sessionId, urls });
  return lease.time('connect', async () => {
    emit({ type: 'connecting', sessionId, library: connector.library, protocol: settings.protocol });
    try {
      const { spare } = pool[INTERNALS].client.service;
      const plan = { settings, baseUrl: pool.baseUrl, spare, pageUrl, signal, onPagesClosed };
      const connection = await connectSession(connector, session, plan);
      emit({ type: 'connected', sessionId });
      return connection;
    } catch (error) {
      emit({ type: 'connect-failed', sessionId, error: error as Error });
      throw error;
    }
  });
}

function isSessionOver(error: unknown): boolean {
  return error instanceof ConnectError && meaningOf(error.status ?? 0).endsSession;
}

/** Warns before the service ends a session without a connection (extension: inactivity). */
class ExpiryTimer {
  readonly #timeout: number;
  readonly #onExpiring: (timeLeft: number) => void;
  #timer: NodeJS.Timeout | undefined;

  /** @param timeout Milliseconds of inactivity until the session ends. */
  constructor(timeout: number, onExpiring: (timeLeft: number) => void) {
    this.#timeout = timeout;
    this.#onExpiring = onExpiring;
  }

  start(): void {
    const timeLeft = Math.min(EXPIRY_WARNING, this.#timeout / 2);
    this.stop();
    // The timer must not keep the process alive.
    this.#timer = startTimer(this.#timeout - timeLeft, () => this.#onExpiring(timeLeft))?.unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
