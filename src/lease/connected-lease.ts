import type { OpenConnection } from '../connect/connect-session.js';
import type { Connector, Isolation, Workspace } from '../connect/connector.js';
import type { SocketEnd } from '../connect/socket.js';
import type { BrowserSession } from '../service/wire.js';
import { raceAbort, raceEnd, raceTimeout, startTimer } from '../shared/abort.js';
import { duration, InvalidOptionError } from '../shared/errors.js';
import { ArtifactError, CallbackTimeoutError, CleanupError, LeaseOverError } from '../shared/lease-errors.js';
import { ArtifactCollector, type ArtifactEnd, type ObservedPart } from './artifacts.js';
import { DetachedLease } from './detached-lease.js';
import type { Lease, LeaseEnd, LeaseUse } from './lease.js';
import { Link } from './link.js';
import { callInside } from './nesting.js';
import type { RunSummary } from './run.js';

/** Time for the artifacts in ms: 10 s of the browser, and the rest for the disk. */
const ARTIFACTS_TIMEOUT = 15_000;
/** Time for closing the pages and contexts of a lease, in ms. */
const CLEANUP_TIMEOUT = 5000;
/** Time for the library to disconnect, in ms; then the socket is closed. */
const DISCONNECT_TIMEOUT = 2000;

/** The part of every callback's argument that does not come from the library. */
export interface LeaseFacts {
  /** The leased session. */
  session: BrowserSession;
  /** Aborts when the run must end: by the caller's signal, a timeout, or the loss of the browser. */
  signal: AbortSignal;
}

/** The callback of `withPooledBrowser`. It is called once, with a connected browser. */
export type Callback<Handles, Value> = (lease: Handles & LeaseFacts) => Value | PromiseLike<Value>;

/** A lease with a connection. Its holder must call `end`. */
export class ConnectedLease<Handles> implements LeaseUse {
  readonly lease: Lease;
  readonly link: Link<Handles>;
  /** Resolves when the release of the browser begins. */
  readonly disconnected: Promise<void>;
  #onDisconnected = () => {};
  /** Of the whole lease. */
  #collector: ArtifactCollector | undefined;

  /** Connects to a leased browser. After a failure the lease is still held. */
  static async open<Handles>(
    lease: Lease,
    connector: Connector<Handles>,
    options?: { isAttached: boolean },
  ): Promise<ConnectedLease<Handles>> {
    return new ConnectedLease(lease, await Link.open(lease, connector, options));
  }

  private constructor(lease: Lease, link: Link<Handles>) {
    this.lease = lease;
    this.link = link;
    this.disconnected = new Promise((resolve) => {
      this.#onDisconnected = resolve;
    });
  }

  get session(): BrowserSession {
    return this.lease.session;
  }

  get signal(): AbortSignal {
    return this.lease.call.signal;
  }

  /** The library's handles over the present connection. */
  get handles(): Handles {
    return this.link.connection.handles;
  }

  /**
   * Calls the callback, once. If its browser was lost, the call fails, whatever the callback returned.
   *
   * @param task The index of the task, if one lease runs many.
   */
  async call<Value>(fn: Callback<Handles, Value>, task?: { index: number }): Promise<Value> {
    const { lease, link, handles, signal, session } = this;
    const { call, sessionId } = lease;
    const { pool, settings, abort, emit } = call;
    const timer = startTimer(settings.timeout, () =>
      abort.abort(new CallbackTimeoutError(settings.timeout, { pool: pool.idOrName, sessionId })),
    );
    emit({ type: 'callback-started', sessionId });
    let status: 'ok' | 'failed' = 'failed';
    try {
      signal.throwIfAborted();
      const callFn = () => callInside({ pool, session }, async () => fn({ ...handles, session, signal }));
      const work = async () => {
        const returned = await raceAbort(callFn(), signal);
        link.check();
        signal.throwIfAborted();
        return returned;
      };
      const value = await lease.time('callback', work, task);
      status = 'ok';
      return value;
    } catch (error) {
      link.check();
      throw error;
    } finally {
      clearTimeout(timer);
      emit({ type: 'callback-ended', sessionId, status });
    }
  }

  /** Begins to collect the artifacts of the whole lease, with the option `artifacts`. */
  async observeAll(): Promise<void> {
    const part = { handles: this.handles, scope: 'browser' } as const;
    this.#collector = await raceTimeout(ARTIFACTS_TIMEOUT, () => this.observe(part), lateArtifacts);
  }

  /** Begins to collect artifacts of some pages. Resolves to undefined if there is nothing to collect. */
  async observe(
    part: ObservedPart<Handles>,
    options = this.lease.call.settings.artifacts,
  ): Promise<ArtifactCollector | undefined> {
    const { call, sessionId } = this.lease;
    const { connection } = this.link;
    return options && ArtifactCollector.begin({ call, sessionId, connection, options }, part);
  }

  /** The time of a round trip to the browser in ms, as far as it is known. */
  get roundTrip(): number | undefined {
    return this.link.connection.socket.roundTrip;
  }

  /** Opens a page for tasks, and measures the round trip. */
  async openWorkspace(isolation: Isolation): Promise<Workspace<Handles>> {
    const { connection } = this.link;
    connection.socket.ping();
    if (connection.openWorkspace) return connection.openWorkspace(isolation);
    throw new InvalidOptionError(
      'connector',
      'The connector has no openWorkspace, which mapPooledBrowsers needs.',
    );
  }

  /** Disconnects and leaves the browser leased, for `attachBrowser`. */
  async detach(): Promise<DetachedLease> {
    const { lease, session, signal } = this;
    const { pool } = lease.call;
    signal.throwIfAborted();
    if (lease.hasEnded) throw new LeaseOverError('The lease has ended.', { sessionId: lease.sessionId });
    await this.end({ status: 'ok', leave: true });
    const earlierReplays = lease.replays?.earlier;
    return new DetachedLease({ pool: pool.idOrName, baseUrl: pool.baseUrl, session, earlierReplays });
  }

  /** Cleans up, disconnects and releases the browser, once. Never rejects. */
  end(outcome: LeaseEnd): Promise<RunSummary> {
    if (!this.lease.hasEnded) {
      this.link.close();
      if (!this.#collector || !this.#isReachable) this.#cutAfterAbort();
    }
    const leaves = outcome.leave === true || this.lease.call.settings.release === 'leave';
    const collectArtifacts = (end: LeaseEnd) => this.collectArtifacts(end);
    const disconnect = () => this.disconnect();
    const use = leaves ? { collectArtifacts, cleanUp: async () => false, disconnect } : this;
    return this.lease.end(outcome, use);
  }

  async collectArtifacts({ status }: LeaseEnd): Promise<void> {
    const { pool, settings, artifacts } = this.lease.call;
    const name = settings.name ?? pool.idOrName;
    const end = { name, failed: status === 'failed', isReachable: this.#isReachable };
    artifacts.push(...(await this.collect(this.#collector, end)));
  }

  /** Resolves with the paths of artifacts. Never rejects: a disk that does not respond must not delay the release. */
  async collect(collector: ArtifactCollector | undefined, end: ArtifactEnd): Promise<readonly string[]> {
    try {
      return (await raceTimeout(ARTIFACTS_TIMEOUT, async () => collector?.collect(end), lateArtifacts)) ?? [];
    } catch (error) {
      this.lease.call.cleanupErrors.push(error as Error);
      return [];
    }
  }

  async cleanUp(): Promise<boolean> {
    const { lease, link, signal } = this;
    const { call, sessionId } = lease;
    this.#cutAfterAbort();
    if (signal.aborted) return false;
    try {
      await lease.time('cleanup', () => closeOpened(link.connection, sessionId));
      call.emit({ type: 'cleaned-up', sessionId });
      return link.knowsAllPages;
    } catch (error) {
      call.cleanupErrors.push(error as Error);
      call.emit({ type: 'cleaned-up', sessionId, error: error as Error });
      return false;
    }
  }

  /** Disconnects. Afterwards no message can reach the browser, whatever the library reports. */
  async disconnect(): Promise<void> {
    const { connection } = this.link;
    const timeout = () => new Error(`The library did not disconnect within ${duration(DISCONNECT_TIMEOUT)}.`);
    await raceTimeout(DISCONNECT_TIMEOUT, () => connection.disconnect(), timeout).catch(() => {});
    connection.cut();
    this.#onDisconnected();
  }

  /** After a timeout, the browser can still show why. After another abort the browser is lost, or the caller has left. */
  get #isReachable(): boolean {
    return !this.signal.aborted || this.signal.reason instanceof CallbackTimeoutError;
  }

  /** After an abort the callback may still run. Without a socket, it can't reach the browser of the next lease. */
  #cutAfterAbort(): void {
    if (this.signal.aborted) this.link.connection.cut();
  }
}

function lateArtifacts(): ArtifactError {
  return new ArtifactError(`The artifacts took longer than ${duration(ARTIFACTS_TIMEOUT)}.`);
}

/** Closes everything that was opened over a connection, within `CLEANUP_TIMEOUT`. */
async function closeOpened(connection: OpenConnection<unknown>, sessionId: string): Promise<void> {
  // Not every library notices that its socket has ended.
  const dropped = (how: SocketEnd) => new CleanupError(`The WebSocket ended (${how}).`, { sessionId });
  const timeout = () =>
    new CleanupError(`The browser did not respond within ${duration(CLEANUP_TIMEOUT)}.`, { sessionId });
  try {
    await raceTimeout(
      CLEANUP_TIMEOUT,
      () => raceEnd(connection.cleanup(), connection.ended, dropped),
      timeout,
    );
  } catch (cause) {
    throw new CleanupError('Not all pages of the lease could be closed.', { sessionId, cause });
  }
}
