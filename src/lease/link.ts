import type { OpenConnection } from '../connect/connect-session.js';
import { ConnectError, ConnectionDroppedError, type LossReason } from '../shared/lease-errors.js';
import { LinkedAbort, raceAbort } from '../shared/abort.js';
import { withRetries } from '../shared/lazy.js';
import { ExpiryWatch } from './expiry-watch.js';
import type { RunStep } from './events.js';

/** Statuses with which a service says that a session is over: no later try will change it. */
const OVER = [401, 403, 404, 410];

export interface LinkPlan<Handles> {
  /** Opens another connection to the same browser, with the page at this address, if it is still there. */
  connect: (pageUrl: string | undefined, signal: AbortSignal) => Promise<OpenConnection<Handles>>;
  /** Nobody was connected during this lease before. */
  isFirst: boolean;
  /** Replace a connection that ended. Otherwise the browser is lost with its connection. */
  reconnect: boolean;
  /** Replace it at once, so that the session does not expire; otherwise when it is next used. */
  keepAlive: boolean;
  /** Milliseconds without a connection after which the service ends the session. */
  inactivityTimeout: number;
  signal: AbortSignal;
  tell: (step: RunStep) => void;
  /** The browser is lost for good. */
  onLost: (reason: LossReason, cause?: unknown) => void;
  facts: { pool: string; sessionId: string };
}

/**
 * The connection of a lease. One that ends before its time is replaced, where the caller asked for that; what was under
 * way then fails, and is not repeated.
 */
export class Link<Handles> {
  readonly #plan: LinkPlan<Handles>;
  readonly #abort: LinkedAbort;
  readonly #expiry: ExpiryWatch;
  #connection: OpenConnection<Handles>;
  /** Aborts when the present connection ends, or the lease. */
  #current: LinkedAbort;
  /** Settles when there is a connection again; missing while nobody is connecting. */
  #renewing: Promise<void> | undefined;
  #isFirst: boolean;
  #isClosed = false;

  constructor(connection: OpenConnection<Handles>, plan: LinkPlan<Handles>) {
    this.#plan = plan;
    this.#abort = new LinkedAbort(plan.signal);
    this.#expiry = new ExpiryWatch(plan.inactivityTimeout, (timeLeft) =>
      plan.tell({ type: 'session-expiring', sessionId: plan.facts.sessionId, timeLeft }),
    );
    this.#connection = connection;
    this.#isFirst = plan.isFirst;
    this.#current = new LinkedAbort(plan.signal);
    this.#watch(connection);
  }

  /** The present connection; after its end the last one. */
  get connection(): OpenConnection<Handles> {
    return this.#connection;
  }

  /** False once a connection was replaced: nobody knows then which pages were opened over the one before. */
  get knowsAllPages(): boolean {
    return this.#isFirst;
  }

  /** Waits for a connection, and calls `fn` with what it hands out. Fails when that connection ends meanwhile. */
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

  /** A driver knows at once that the callback closed it; our end of its socket hears of it later. */
  check(): void {
    if (!this.#current.signal.aborted && !this.#connection.isConnected()) this.#lose('closed-by-callback');
  }

  /** From now on the connection ends at our own wish, and is not replaced. */
  close(): void {
    this.#isClosed = true;
    this.#expiry.stop();
    this.#abort.abort(new DOMException('The lease is over', 'AbortError'));
    this.#abort.dispose();
    this.#current.dispose();
  }

  #watch(connection: OpenConnection<Handles>): void {
    void connection.ended.then((end) => {
      if (connection === this.#connection && end !== 'closed-by-us') this.#onEnded(end);
    });
  }

  #onEnded(reason: LossReason): void {
    if (this.#isClosed || this.#current.signal.aborted) return;
    const { reconnect, keepAlive, tell, facts } = this.#plan;
    if (!reconnect || reason === 'expired' || reason === 'closed-by-callback') return this.#lose(reason);
    this.#current.abort(new ConnectionDroppedError(facts));
    tell({ type: 'connection-dropped', sessionId: facts.sessionId, reason });
    this.#expiry.start();
    // Its failure is told by `onLost`.
    if (keepAlive) this.renew().catch(() => {});
  }

  async #renew(): Promise<void> {
    const { tell, facts } = this.#plan;
    const { signal } = this.#abort;
    signal.throwIfAborted();
    const pageUrl = this.#connection.pageUrl?.();
    this.#current.abort(new ConnectionDroppedError(facts));
    this.#current.dispose();
    // It may only seem to be alive.
    this.#connection.cut();
    const connection = await this.#connect(pageUrl);
    // Nobody would end it any more.
    if (this.#isClosed) connection.cut();
    signal.throwIfAborted();
    this.#connection = connection;
    this.#isFirst = false;
    this.#current = new LinkedAbort(this.#plan.signal);
    this.#expiry.stop();
    this.#watch(connection);
    tell({ type: 'reconnected', sessionId: facts.sessionId });
  }

  /** Tries as long as the session may last. */
  async #connect(pageUrl: string | undefined): Promise<OpenConnection<Handles>> {
    const { signal } = this.#abort;
    try {
      return await withRetries(() => this.#plan.connect(pageUrl, signal), {
        retries: Number.POSITIVE_INFINITY,
        maxRetryTime: this.#plan.inactivityTimeout,
        minTimeout: 200,
        maxTimeout: 2000,
        randomize: true,
        signal,
        shouldRetry: ({ error }) => !isOver(error),
      });
    } catch (cause) {
      signal.throwIfAborted();
      this.#lose(isOver(cause) ? 'expired' : 'dropped', cause);
      throw this.#plan.signal.reason;
    }
  }

  #lose(reason: LossReason, cause?: unknown): void {
    if (this.#isClosed) return;
    this.#expiry.stop();
    this.#plan.onLost(reason, cause);
  }
}

function isOver(error: unknown): boolean {
  return error instanceof ConnectError && OVER.includes(error.status ?? 0);
}
