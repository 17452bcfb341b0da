import { AsyncLocalStorage } from 'node:async_hooks';
import type { Connector, Isolation, Workspace } from '../connect/connector.js';
import type { BrowserPool } from '../pool/browser-pool.js';
import { clientOf } from '../pool/client.js';
import type { Grant } from '../services/browser-service.js';
import { ticketOf } from '../pool/grant.js';
import { heldSessionsOf, type HeldSession } from '../pool/held-sessions.js';
import { beginCall } from '../pool/open-calls.js';
import { INTERNALS } from '../pool/pool-internals.js';
import type { BrowserSession } from '../services/kernel.js';
import { meaningOf } from '../net/status.js';
import { LinkedAbort, raceAbort, raceTimeout } from '../shared/abort.js';
import { clock, nextTurn, startTimer } from '../shared/clock.js';
import { InvalidOptionError } from '../shared/errors.js';
import { CallbackTimeoutError, CleanupError, ConnectError, LeaseOverError } from '../shared/lease-errors.js';
import { runs, uncleanBrowsers } from '../shared/process-state.js';
import { PoolClosedError, type ReleaseError } from '../shared/service-errors.js';
import { callListener, publish, traceStage, type Stage, type StageTrace } from '../shared/telemetry.js';
import { acquireBrowser, AcquireWait, type Acquired } from './acquire.js';
import { ArtifactCollector, type ObservedPart } from '../features/artifacts/artifacts.js';
import { DetachedLease, type LeaseRecord } from '../calls/detached-lease.js';
import { LeaseDownloads } from '../features/downloads/downloads.js';
import type { RunEvent, RunStep } from './events.js';
import { expectLasting, inTime, Link, loadConnect, prepareConnect } from './link.js';
import type { LeaseSettings } from './options.js';
import { LeaseReplays } from '../features/replays/replays.js';
import {
  rememberRun,
  type FailedRun,
  type LeaseOutcome,
  type Released,
  type ReleaseChoice,
  type ReplayResult,
  type RunSummary,
  type Timings,
} from './run.js';

/** Time for closing the contexts of a lease and for cleaning the browser, in ms. */
const CLEANUP_TIMEOUT = 5000;
/** Turns of the event loop within which a library sends the command of a call. */
const SENDING_TURNS = 5;
/** Time for the library to disconnect, in ms; then the socket is closed. */
const DISCONNECT_TIMEOUT = 2000;

/** The part of every callback's argument that does not come from the library. */
export interface LeaseFacts<Session extends object = BrowserSession> {
  /** The leased session. */
  session: Session;
  /** Aborts when the run must end: by the caller's signal, a timeout, or the loss of the browser. */
  signal: AbortSignal;
}

/** The callback of `withPooledBrowser`. It is called once, with a connected browser. */
export type Callback<Handles, Value, Session extends object = BrowserSession> = (
  lease: Handles & LeaseFacts<Session>,
) => Value | PromiseLike<Value>;

/** How the use of a lease ended. */
export interface LeaseEnd {
  readonly status: 'ok' | 'failed';
  readonly error?: unknown;
  /** Leave the browser leased and unchanged, for `attachBrowser`. */
  readonly isDetached?: boolean;
}

/** What a call asks of its lease. */
export interface LeasePlan<Handles> {
  readonly pool: BrowserPool<object>;
  readonly settings: LeaseSettings;
  /** How to connect. Without it, another program connects. */
  readonly connector?: Connector<Handles>;
  /** False if the tasks of the lease use contexts of their own. Default: true with `context: 'default'`. */
  readonly isOwnContextUsed?: boolean;
  /** Names that the caller adds to the handles of the connector. Default: `session` and `signal`. */
  readonly addedNames?: readonly string[];
}

/** The lease inside whose callback the code runs now. */
const outerLease = new AsyncLocalStorage<Lease<unknown>>();

/**
 * The life of one call, from its first acquire request to the release of its browser:
 *
 * ```
 * acquiring ─▶ leased ─▶ connected ─▶ ending ─▶ ended
 *     ▲           │
 *     └───────────┘ the browser can't be reached: it is released for destruction, and another one leased
 * ```
 *
 * A lease without a connection (for another program) goes from `leased` to `ending`. A call that fails before it has a browser
 * goes from `acquiring` to `ended`. The holder of a lease must call `end`.
 *
 * The methods stand in this order: the beginning (`open`, `attach`), the work (`call`, `observe`, `openWorkspace`), the end
 * (`detach`, `end`); then the facts about the browser, and the reports.
 */
export class Lease<Handles> {
  readonly pool: BrowserPool<object>;
  readonly settings: LeaseSettings;
  /** Errors of recording, artifacts, downloads, cleanup and release. */
  readonly cleanupErrors: Error[] = [];
  readonly counts = { acquireAttempts: 0, unknownAcquires: 0 };
  /** Resolves when the release of the browser begins. */
  readonly disconnected: Promise<void>;
  #onDisconnected = () => {};
  /** With the option `downloads`. */
  readonly downloads: LeaseDownloads | undefined;
  /** The recordings of the browser, without the option `replays: 'off'`. */
  replays: LeaseReplays | undefined;

  /** Number of the call in this process. */
  readonly #run = ++runs.count;
  /** Aborts by the caller's signal, a timeout, or the loss of the browser. */
  readonly #abort: LinkedAbort;
  readonly #endCall: () => void;
  /** From `open` or `attach` on, until the end. */
  #isOpen = false;
  readonly #stages: { [stage in Stage]?: number } = {};
  readonly #artifacts: string[] = [];
  /** The lease inside whose callback this one began, while this one lasts. */
  #outer: Lease<unknown> | undefined = outerLease.getStore();
  /** Number of the browser within the call, from 1. */
  #attempt = 0;
  /** The last browser that could not be reached. */
  #givenUp: Pick<FailedRun, 'session' | 'released'> = {};

  /** Since `leased`: the browser, also after the end. */
  #browser: Acquired | undefined;
  /** Since `leased`, until the release: this process must release the browser. */
  #held: HeldSession | undefined;
  /** Since `connected`. */
  #link: Link<Handles> | undefined;
  /** Since `ending`. */
  #ended: Promise<RunSummary> | undefined;

  /** The holder of the lease works in the browser's own context. */
  #worksInOwnContext: boolean;
  #wasOwnContextTouched = false;
  /** Files that the lease downloaded are left on the browser's machine. */
  #leavesFiles = false;
  /** Of the whole lease. */
  #collector: ArtifactCollector | undefined;

  /**
   * Acquires a browser and connects to it. A browser that can't be reached is released for destruction, and another one is
   * leased. After a failure nothing stays leased, and the call has ended.
   */
  static async open<Handles>(plan: LeasePlan<Handles>): Promise<Lease<Handles>> {
    const lease = new Lease(plan);
    await lease.#begin(plan);
    return lease.#opened();
  }

  /** Continues a lease of another process. After a failure, that lease is unchanged. */
  static async attach<Handles>(
    plan: LeasePlan<Handles>,
    { earlierReplays, isMarkShown, ...record }: Omit<LeaseRecord, 'pool' | 'baseUrl'>,
  ): Promise<Lease<Handles>> {
    const { pool, settings } = plan;
    const { id: sessionId } = record.grant;
    await prepareFolders(settings, settings.signal);
    // Built here: the token must not be sent where a record from outside wants it.
    const ticket = ticketOf(sessionId, { pool, lease: record.lease }, isMarkShown);
    const client = clientOf(pool);
    const { limit } = pool[INTERNALS];
    const leave = client.queueOf(pool.idOrName).join(sessionId, { limit, isAlone: !ticket });
    if (!leave) {
      const message = 'Another lease of this process uses the browser: release that lease first.';
      throw new ConnectError(message, { sessionId });
    }
    // The lease before it may have used the browser's own context.
    const lease = new Lease({ ...plan, isOwnContextUsed: true });
    lease.#hold({ ...record, ticket, servedAt: undefined, leave }, earlierReplays);
    try {
      await lease.#connect(plan);
    } catch (error) {
      lease.replays?.stop();
      await lease.end({ status: 'failed', error, isDetached: true });
      throw error;
    }
    return lease.#opened();
  }

  private constructor({ pool, settings, isOwnContextUsed }: LeasePlan<Handles>) {
    this.pool = pool;
    this.settings = settings;
    this.#worksInOwnContext = isOwnContextUsed ?? settings.context === 'default';
    this.#abort = new LinkedAbort(settings.signal);
    this.#endCall = beginCall(pool, (error) => this.#endWithPool(error));
    this.downloads = settings.downloads && new LeaseDownloads(this, settings.downloads);
    this.disconnected = new Promise((resolve) => {
      this.#onDisconnected = resolve;
    });
  }

  async #begin(plan: LeasePlan<Handles>): Promise<void> {
    const { signal, settings, pool } = this;
    const deadline = new LinkedAbort(signal, settings.acquireTimeout);
    try {
      signal.throwIfAborted();
      await prepareFolders(settings, signal);
      if (plan.connector) prepareConnect(pool, plan.connector).catch((error: unknown) => this.abort(error));
      for (let [failures, refusals] = [0, 0]; ;) {
        await this.#acquire(deadline, !plan.connector || settings.reconnect !== false);
        const error = await this.#reach(plan);
        if (!error) return;
        const isRefusal =
          this.#endsWith === 'connection' && meaningOf(error.status ?? 0).acquire === 'unavailable';
        if (isRefusal) await new AcquireWait(this, deadline).pauseAfterRefusal(error, ++refusals);
        else if (++failures >= settings.connectAttempts) throw error;
      }
    } catch (error) {
      const replayStatus = settings.replays === 'off' ? 'off' : 'none';
      this.#finish({ ...this.#givenUp, replays: [], replayStatus }, { error });
      throw error;
    } finally {
      deadline.dispose();
    }
  }

  /** @param keepAlive Another program, or a new connection, uses the session after its first connection. */
  async #acquire(deadline: LinkedAbort, keepAlive: boolean): Promise<void> {
    const attempt = ++this.#attempt;
    this.#browser = undefined;
    await this.time('acquire', async (trace) => {
      this.#hold(await acquireBrowser(this, deadline, keepAlive));
      trace.sessionId = this.sessionId;
    });
    this.emit({ type: 'acquired', session: this.session, sessionId: this.sessionId, attempt });
  }

  /** @param earlier Ids of the recordings from before the lease, if they are known. */
  #hold(browser: Acquired, earlier?: readonly string[]): void {
    const { releaseOnCrash, replays } = this.settings;
    const { grant, ticket, servedAt } = browser;
    this.#browser = browser;
    this.#held = heldSessionsOf(this.pool).hold(grant.id, ticket, { onCrash: releaseOnCrash });
    this.replays = replays === 'off' ? undefined : new LeaseReplays(this, { earlier, servedAt });
  }

  /** Connects to the browser. Returns the error of one that can't be reached, after its release. */
  async #reach(plan: LeasePlan<Handles>): Promise<ConnectError | undefined> {
    try {
      await this.#cleanFirst();
      await this.#connect(plan);
      return undefined;
    } catch (error) {
      const { session } = this;
      this.replays?.stop();
      const releasing = this.#release(this.#endsWith === 'nothing' ? 'leave' : 'destroy');
      clientOf(this.pool).background.track(releasing);
      this.#givenUp = { session, released: await releasing };
      if (!(error instanceof ConnectError)) throw error;
      return error;
    }
  }

  /** Removes what an earlier lease of this process left in a browser that nothing could destroy. */
  async #cleanFirst(): Promise<void> {
    const how = this.#endsWith === 'nothing' ? uncleanBrowsers.get(this.#address) : undefined;
    if (!how) return;
    const { settings, signal, grant } = this;
    const { cleanSession } = await loadConnect();
    const { trust } = clientOf(this.pool);
    await this.time('connect', () => cleanSession(grant, { settings, trust, signal }, how));
    uncleanBrowsers.delete(this.#address);
  }

  async #connect({ connector, addedNames = ['session', 'signal'] }: LeasePlan<Handles>): Promise<void> {
    if (!connector) return;
    const link = await Link.open(this, connector);
    const taken = addedNames.find((name) => Object.hasOwn(link.connection.handles as object, name));
    if (taken !== undefined) {
      link.close();
      link.connection.cut();
      const message = `The connector ${connector.library} has a handle ${taken}, which is a name of this library. Rename the handle.`;
      throw new InvalidOptionError('connector', message);
    }
    this.#link = link;
  }

  /**
   * Calls the callback, once. If its browser was lost, the call fails, whatever the callback returned.
   *
   * @param task The index of the task, if one lease runs many.
   */
  async call<Value>(fn: Callback<Handles, Value>, task?: { index: number }): Promise<Value> {
    const { link, signal, session, sessionId, settings, emit } = this;
    const timer = startTimer(settings.timeout, () =>
      this.abort(new CallbackTimeoutError(settings.timeout, { pool: this.pool.idOrName, sessionId })),
    );
    emit({ type: 'callback-started', sessionId });
    let status: 'ok' | 'failed' = 'failed';
    try {
      signal.throwIfAborted();
      const callFn = async () => fn({ ...this.handles, session, signal });
      const work = async () => {
        const returned = await raceAbort(outerLease.run(this, callFn), signal);
        link.check();
        signal.throwIfAborted();
        return returned;
      };
      const value = await this.time('callback', work, task);
      status = 'ok';
      return value;
    } catch (error) {
      link.check();
      link.connection.explain?.(error);
      throw error;
    } finally {
      clock.clearTimeout(timer);
      emit({ type: 'callback-ended', sessionId, status });
    }
  }

  /** Begins to collect the artifacts of the whole lease, with the option `artifacts`. */
  async observeAll(): Promise<void> {
    this.#collector = await this.observe({ handles: this.handles, scope: 'browser' });
  }

  /** Begins to collect artifacts of some pages. Resolves to undefined if there is nothing to collect. */
  async observe(
    part: ObservedPart<Handles>,
    options = this.settings.artifacts,
  ): Promise<ArtifactCollector | undefined> {
    return options && ArtifactCollector.begin(this, this.link.connection, options, part);
  }

  /** Opens a page for tasks, and measures the round trip. */
  async openWorkspace(isolation: Isolation, contextOptions?: object): Promise<Workspace<Handles>> {
    const { connection } = this.link;
    connection.socket.ping();
    if (connection.openWorkspace) return connection.openWorkspace(isolation, contextOptions);
    throw new InvalidOptionError(
      'connector',
      'The connector has no openWorkspace, which mapPooledBrowsers needs.',
    );
  }

  /** The time of a round trip to the browser in ms, as far as it is known. */
  get roundTrip(): number | undefined {
    return this.link.connection.socket.roundTrip;
  }

  /** Ends the work in the browser. */
  abort(reason: unknown): void {
    this.#abort.abort(reason);
  }

  #opened(): this {
    this.#isOpen = true;
    const { reason } = this.signal;
    if (reason instanceof PoolClosedError) this.#endWithPool(reason);
    return this;
  }

  /** The pool was closed: nobody else may be left to end the lease. */
  #endWithPool(error: PoolClosedError): void {
    this.abort(error);
    if (this.#isOpen) void this.end({ status: 'failed', error: this.signal.reason });
  }

  /** Disconnects and leaves the browser leased, for `attachBrowser`. */
  async detach(): Promise<DetachedLease> {
    this.signal.throwIfAborted();
    if (this.#ended) throw new LeaseOverError('The lease has ended.', { sessionId: this.sessionId });
    expectLasting(this, 'detach');
    await this.end({ status: 'ok', isDetached: true });
    const { idOrName: pool, baseUrl } = this.pool;
    const { grant, lease, ticket } = this.#browser!;
    const isMarkShown = ticket?.owner?.isShown ?? false;
    const earlierReplays = this.replays?.earlier;
    return new DetachedLease({ pool, baseUrl, grant, lease, isMarkShown, earlierReplays });
  }

  /**
   * Ends the lease, once: stops the recording, collects the artifacts, cleans up, lists the recordings, disconnects,
   * releases. Each step has its own timeout, and no failure prevents the next step. Never rejects.
   */
  end(outcome: LeaseEnd): Promise<RunSummary> {
    if (!this.#ended) {
      this.#ended = this.#end(outcome);
      clientOf(this.pool).background.track(this.#ended);
    }
    return this.#ended;
  }

  async #end({ isDetached = false, ...outcome }: LeaseEnd): Promise<RunSummary> {
    const { session, settings, replays } = this;
    const leaves = isDetached || settings.release === 'leave';
    this.#link?.close();
    if (!this.#collector || !this.#isReachable) this.#cutAfterAbort();
    if (replays?.isRecording) await this.time('replays', () => replays.stopRecording());
    await Promise.all([this.#collectArtifacts(outcome), this.#settleDownloads(leaves)]);
    if (outcome.status === 'ok') await this.#reportPendingCalls();
    const [healthy, recorded] = await Promise.all([
      !leaves && this.#cleanUp(),
      replays ? this.time('replays', () => replays.collect()) : OFF,
    ]);
    if (replays) this.#reportReplays(recorded);
    await this.#disconnect();
    const chosen = leaves ? 'leave' : this.#chooseRelease({ ...outcome, healthy, session });
    const choice = chosen === 'destroy' && this.#endsWith === 'nothing' ? this.#keepOpen(healthy) : chosen;
    const releasing = this.#release(choice, isDetached);
    clientOf(this.pool).background.track(releasing);
    const isAwaited = settings.awaitRelease || choice === 'leave';
    const released: RunSummary['released'] = isAwaited ? await releasing : 'pending';
    // The browser may already belong to another lease.
    const finished = replays?.isRecording
      ? await this.time('replays', () => replays.finish(recorded))
      : recorded;
    if (finished !== recorded) this.#reportReplays(finished);
    const ended = { session, replays: finished.replays, replayStatus: finished.replayStatus, released };
    if (outcome.status === 'failed') return this.#finish(ended, { error: outcome.error });
    // A call whose signal aborted during the release rejects too.
    const { signal } = settings;
    return this.#finish(ended, signal?.aborted ? { error: signal.reason } : undefined);
  }

  async #collectArtifacts({ status }: LeaseEnd): Promise<void> {
    const name = this.settings.name ?? this.pool.idOrName;
    const end = { name, failed: status === 'failed', isReachable: this.#isReachable };
    this.#artifacts.push(...((await this.#collector?.collect(end)) ?? []));
  }

  /** Waits for the running downloads. Never rejects. */
  async #settleDownloads(leaves: boolean): Promise<void> {
    if (!this.#link) return;
    const { connection } = this.#link;
    await this.downloads?.settle(connection, { leaves });
    if (this.signal.aborted || !connection.downloads) return;
    try {
      await inTime(connection, CLEANUP_TIMEOUT, () => connection.downloads!.leaveNothing());
    } catch (cause) {
      this.#leavesFiles = true;
      this.#reportUnclean("Not all downloaded files could be removed from the browser's machine.", cause);
    }
  }

  async #reportPendingCalls(): Promise<void> {
    const { socket } = this.#link?.connection ?? {};
    // Playwright sends a command some turns after its call.
    for (let turn = 0; socket && turn < SENDING_TURNS; turn++) await nextTurn();
    const methods = socket?.pendingCalls ?? [];
    if (methods.length === 0 || this.signal.aborted) return;
    const { sessionId } = this;
    const calls = methods.length === 1 ? '1 call had' : `${methods.length} calls had`;
    const message = `${calls} no result when the lease of session ${sessionId} ended (${methods.join(', ')}). Did you forget await?`;
    this.emit({ type: 'pending-calls', sessionId, methods, message });
  }

  /** Closes what the lease opened, and cleans the browser if it may be reused. Resolves to true if it can be. */
  async #cleanUp(): Promise<boolean> {
    const { signal, sessionId, emit } = this;
    this.#cutAfterAbort();
    if (signal.aborted || !this.#link) return false;
    const { connection } = this.#link;
    const { release } = this.settings;
    const isKept = release === 'reuse' || (release === 'destroy' && this.#endsWith !== 'nothing');
    const clean = async () => {
      await connection.cleanup();
      const isOwnContextUsed = this.#isOwnContextUsed;
      if (this.#canBeReused && !isKept) await connection.clean({ isOwnContextUsed });
    };
    try {
      await this.time('cleanup', () => inTime(connection, CLEANUP_TIMEOUT, clean));
      emit({ type: 'cleaned-up', sessionId });
      return this.#canBeReused;
    } catch (cause) {
      const text = 'Not all pages, contexts and data of the lease could be removed.';
      emit({ type: 'cleaned-up', sessionId, error: this.#reportUnclean(text, cause) });
      return false;
    }
  }

  /** Disconnects. Afterwards no message can reach the browser, whatever the library reports. */
  async #disconnect(): Promise<void> {
    const connection = this.#link?.connection;
    if (connection) {
      await raceTimeout(DISCONNECT_TIMEOUT, () => connection.disconnect()).catch(() => {});
      connection.cut();
    }
    this.#onDisconnected();
  }

  #chooseRelease(outcome: LeaseOutcome): ReleaseChoice {
    const { release: choice } = this.settings;
    if (choice !== 'auto' && typeof choice !== 'function') return choice;
    const auto = outcome.healthy ? 'reuse' : 'destroy';
    if (choice === 'auto') return auto;
    try {
      return choice(outcome);
    } catch (error) {
      this.cleanupErrors.push(error as Error);
      return auto;
    }
  }

  /** Nothing can destroy the browser. If it is not clean, the next lease of this process cleans it first. */
  #keepOpen(isClean: boolean): ReleaseChoice {
    if (isClean) return 'reuse';
    uncleanBrowsers.set(this.#address, { isOwnContextUsed: this.#isOwnContextUsed });
    this.#reportUnclean(
      'The browser stays open with data of this lease, because nothing can destroy it. The next lease of this process ' +
        'removes the data, or fails.',
    );
    return 'leave';
  }

  /** Releases the browser. Never rejects: a browser that could not be released is reported. */
  async #release(choice: ReleaseChoice, isDetached = false): Promise<Released> {
    const { sessionId, settings, pool, emit } = this;
    const queue = clientOf(pool).queueOf(pool.idOrName);
    const { leave } = this.#browser!;
    const held = this.#held!;
    this.#held = undefined;
    if (choice === 'leave') {
      held.forget();
      // Nothing but this place keeps other leases away from a browser without a service.
      if (isDetached && this.#endsWith === 'nothing') queue.keep(sessionId, leave);
      else leave();
      return 'left';
    }
    const request = { reuse: choice === 'reuse' && this.#isLeasedAgain, timeout: settings.releaseTimeout };
    try {
      const released = await this.time('release', () => held.release(request));
      emit({ type: 'released', pool: pool.idOrName, sessionId, released });
      return released;
    } catch (thrown) {
      const error = thrown as ReleaseError;
      this.cleanupErrors.push(error);
      emit({ type: 'release-failed', pool: pool.idOrName, sessionId, error });
      return error.released;
    } finally {
      leave();
      queue.noteRelease();
    }
  }

  /** After an abort the callback may still run. Without a socket, it can't reach the browser of the next lease. */
  #cutAfterAbort(): void {
    if (this.signal.aborted) this.#link?.connection.cut();
  }

  /** After a timeout, the browser can still show why. After another abort the browser is lost, or the caller has left. */
  get #isReachable(): boolean {
    return !this.signal.aborted || this.signal.reason instanceof CallbackTimeoutError;
  }

  /** The leased browser. */
  get grant(): Grant {
    return this.#browser!.grant;
  }

  /** Typed as that of the default service. The public functions give it the type of the pool's service. */
  get session(): BrowserSession {
    return this.grant.session as BrowserSession;
  }

  get sessionId(): string {
    return this.grant.id;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get link(): Link<Handles> {
    return this.#link!;
  }

  /** The library's handles over the present connection. */
  get handles(): Handles {
    return this.link.connection.handles;
  }

  /**
   * What ends the session: a release request; the end of its connection, which is the lease; or nothing. Then the browser stays
   * open, and the next lease uses it, too.
   */
  get #endsWith(): 'request' | 'connection' | 'nothing' {
    if (this.#browser!.ticket) return 'request';
    return this.grant.endsWithConnection === true ? 'connection' : 'nothing';
  }

  /** Each session of some services has one lease: nothing of them is reused. */
  get #isLeasedAgain(): boolean {
    return clientOf(this.pool).service.owner !== undefined || this.#endsWith === 'nothing';
  }

  /** The logins of a profile would be lost with the data of its context. */
  get #canBeReused(): boolean {
    const losesLogins =
      this.grant.hasProfile === true && this.#isOwnContextUsed && this.settings.release !== 'reuse';
    return this.#isLeasedAgain && !losesLogins && !this.#leavesFiles;
  }

  /** Where a browser without a service is. */
  get #address(): string {
    return this.grant.cdpUrl ?? '';
  }

  get #isOwnContextUsed(): boolean {
    return this.#worksInOwnContext || this.#wasOwnContextTouched;
  }

  /** Something has happened in the browser's own context. */
  readonly noteOwnContext = (): void => {
    this.#wasOwnContextTouched = true;
  };

  /** For a holder that does not use the handles, but opens contexts of its own. */
  spareOwnContext(): void {
    this.#worksInOwnContext = false;
  }

  /** A sentence for the error of a call that may wait for a browser which its own caller holds. */
  get nestedIn(): string | undefined {
    for (let outer = this.#outer; outer; outer = outer.#outer) {
      if (!outer.#held) continue;
      const { pool, grant } = outer;
      if (pool.baseUrl !== this.pool.baseUrl || pool.idOrName !== this.pool.idOrName) continue;
      return (
        `This call runs inside the lease of session ${grant.id}${grant.name ? ` (${grant.name})` : ''} of the same pool, ` +
        'which can not end before it: lease one browser after the other, or enlarge the pool.'
      );
    }
    return undefined;
  }

  readonly emit = (step: RunStep): void => {
    const elapsed = Math.round(this.#abort.elapsed);
    const event: RunEvent = { ...step, pool: this.pool.idOrName, run: this.#run, elapsed };
    publish(event);
    callListener(this.settings.onEvent, event);
  };

  /** Adds the time of the work to a stage, also if it fails, and traces it. */
  async time<T>(
    stage: Stage,
    work: (trace: StageTrace) => Promise<T>,
    task?: { readonly index: number },
  ): Promise<T> {
    const began = clock.now();
    const ids = { pool: this.pool.idOrName, run: this.#run, attempt: this.#attempt };
    const trace = { ...ids, ...(this.#browser && { sessionId: this.sessionId }), ...task };
    try {
      return await traceStage(stage, trace, work);
    } finally {
      this.#stages[stage] = Math.round((this.#stages[stage] ?? 0) + clock.now() - began);
    }
  }

  #reportReplays({ replays, replayStatus: status, error }: ReplayResult): void {
    const { sessionId } = this;
    if (error) this.cleanupErrors.push(error);
    this.emit({ type: 'replays', sessionId, replays, status, ...(error && { error }) });
  }

  #reportUnclean(message: string, cause?: unknown): CleanupError {
    const error = new CleanupError(message, { sessionId: this.sessionId, cause });
    this.cleanupErrors.push(error);
    return error;
  }

  /** Ends the call: emits its last event, and keeps the run for `runOf`. */
  #finish<End extends Omit<FailedRun, keyof CallFacts>>(
    end: End,
    failure?: { error: unknown },
  ): End & CallFacts {
    const timings: Timings = { ...this.#stages, total: Math.round(this.#abort.elapsed) };
    const { counts, cleanupErrors } = this;
    const downloads = this.downloads?.files ?? [];
    const summary = { ...end, ...counts, timings, cleanupErrors, artifacts: this.#artifacts, downloads };
    this.#outer = undefined;
    if (failure) rememberRun(failure.error, summary);
    this.emit({ type: 'ended', status: failure ? 'failed' : 'ok', summary, ...failure });
    this.#abort.dispose();
    this.#endCall();
    return summary;
  }
}

/** The facts of a run that do not depend on its browser. */
type CallFacts = Omit<RunSummary, 'session' | 'replays' | 'replayStatus' | 'released'>;

const OFF: ReplayResult = { replays: [], replayStatus: 'off' };

/** Before anything is sent: a folder that can't be written must not cost a lease. */
async function prepareFolders(
  { artifacts, downloads }: LeaseSettings,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (!artifacts && !downloads) return;
  // The root entry loads no file functions.
  const { prepareFolder } = await import('../features/artifacts/artifact-files.js');
  if (artifacts) await raceAbort(prepareFolder(artifacts.folder, 'artifacts.folder'), signal);
  if (downloads) await raceAbort(prepareFolder(downloads.folder, 'downloads'), signal);
}
