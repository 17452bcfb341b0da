import { verifyProtocol } from '../connect/verify-connection.js';
import { coreOf, type PoolCore } from '../pool/pool-core.js';
import { refusesUpgrade } from '../net/status.js';
import { raceAbort } from '../shared/abort.js';
import { CallbackTimeoutError, ConnectError, LeaseOverError } from '../shared/lease-errors.js';
import { Acquisition, joinLease, type Acquired } from './acquire.js';
import { Call } from './call.js';
import type { Callback } from './callback.js';
import type { CallContext, LeaseContext } from './context.js';
import { endSteps } from './end-steps.js';
import type { AnyStep, LeaseStep } from './events.js';
import type {
  FeatureSet,
  HandlesOf,
  OwnOf,
  RunningWork,
  SummaryOf,
  WorkPart,
  WorkResult,
} from './feature.js';
import { HeldBrowser } from './held-browser.js';
import { Hooks, type EndHook } from './hooks.js';
import { expectCdpUrl, expectLasting, Link, prepareConnect } from './link.js';
import type { Handover, LeaseEnd, LeasePlan } from './plan.js';
import { rememberRun, type FailedLease, type LeaseSummary } from './summary.js';

/** Time for the library to disconnect, in ms; then the socket is closed. */
const DISCONNECT_TIMEOUT = 2000;

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
 * goes from `acquiring` to `ended`. The holder of a lease must call `end`. What a lease does besides is the work of its features.
 */
export class Lease<Handles, Session extends object = object, Features extends FeatureSet = FeatureSet> {
  readonly features: Features;
  readonly #plan: LeasePlan<Handles, Session, Features>;
  readonly #pools: readonly [PoolCore<Session>, ...PoolCore<Session>[]];
  readonly #call: Call;
  readonly #hooks: Hooks<Features>;
  #acquisition: Acquisition<Session> | undefined;
  /** Since `leased`; also after the end. */
  #browser: HeldBrowser<Session> | undefined;
  /** Since `connected`. */
  #link: Link<Handles> | undefined;
  /** The last browser that could not be reached. */
  #givenUp: Pick<FailedLease<Session>, 'session' | 'released'> = {};
  /** What the features saved at the end of a detached lease. */
  #saved: Handover['features'] = {};
  /** Since `ending`. */
  #ended: Promise<LeaseSummary<Session> & SummaryOf<Features>> | undefined;

  /**
   * Acquires a browser and connects to it. A browser that can't be reached is released for destruction, and another one is
   * leased. After a failure nothing stays leased, and the call has ended.
   */
  static async open<Handles, Session extends object, Features extends FeatureSet>(
    plan: LeasePlan<Handles, Session, Features>,
  ): Promise<Lease<Handles, Session, Features>> {
    const lease = new Lease(plan);
    await lease.#acquire();
    lease.#endWithPool();
    try {
      const part = lease.#link && { connection: lease.#link.connection, handles: lease.handles };
      await lease.#hooks.opened(lease.context, part);
    } catch (error) {
      await lease.end({ status: 'failed', error });
      throw error;
    }
    return lease;
  }

  /** Continues a lease of another process. After a failure, that lease is unchanged. */
  static async attach<Handles, Session extends object, Features extends FeatureSet>(
    plan: LeasePlan<Handles, Session, Features>,
    { features: saved, ...handover }: Handover<Session>,
  ): Promise<Lease<Handles, Session, Features>> {
    const lease = new Lease(plan);
    try {
      lease.#hooks.restore(saved);
      await lease.#hooks.prepare();
      lease.#hold(joinLease(lease.#pools[0], handover));
      // The lease before it may have used the browser's own context.
      lease.context.onOwnContextUsed();
      await lease.#connect();
    } catch (error) {
      lease.#browser?.giveUp();
      if (lease.#browser) await lease.end({ status: 'failed', error, isDetached: true });
      else lease.#finish({}, { error });
      throw error;
    }
    lease.#endWithPool();
    return lease;
  }

  private constructor(plan: LeasePlan<Handles, Session, Features>) {
    const { settings, features } = plan;
    const [first, ...further] = plan.pools;
    this.#plan = plan;
    this.#pools = [coreOf(first), ...further.map((pool) => coreOf(pool))];
    this.features = features;
    this.#call = new Call(this.#pools, settings);
    this.#hooks = new Hooks(features, this.#call.context);
  }

  async #acquire(): Promise<void> {
    const pools = this.#pools;
    const { connector, settings } = this.#plan;
    const call = this.#call.context;
    try {
      call.signal.throwIfAborted();
      const { needsCdp } = this.#hooks;
      const how = { protocol: settings.protocol, connector, needsCdp };
      for (const pool of pools) verifyProtocol(pool.idOrName, pool.service, how);
      await this.#hooks.prepare();
      this.#acquisition = new Acquisition({
        call,
        pools,
        // Another program, or a new connection, uses the session after its first connection.
        keepAlive: !connector || settings.reconnect !== false,
        added: this.#hooks.request(),
        advise: () => this.#hooks.advise(),
        onPool: (pool) => (this.#call.pool = pool),
      });
      if (connector) prepareConnect(pools[0], connector).catch(call.abort);
      await this.#reachOne(this.#acquisition);
    } catch (error) {
      this.#finish(this.#givenUp, { error });
      throw error;
    } finally {
      this.#acquisition?.dispose();
    }
  }

  /** Leases one browser after another, until one can be reached. */
  async #reachOne(acquisition: Acquisition<Session>): Promise<void> {
    const call: CallContext<LeaseStep<Session>> = this.#call.context;
    for (let [attempt, failures] = [1, 0]; ; attempt++) {
      this.#call.browser = { attempt };
      await call.time('acquire', async () => this.#hold(await acquisition.acquire()));
      const { session, sessionId } = this.context;
      call.emit({ type: 'acquired', session, sessionId, attempt });
      const { browser } = this;
      try {
        await browser.cleanFirst();
        await this.#connect();
        browser.wasReached = true;
        return acquisition.served();
      } catch (error) {
        browser.giveUp();
        const { endsWith } = browser;
        const released = await browser.release(endsWith === 'nothing' ? 'leave' : 'destroy');
        this.#givenUp = { session, released };
        if (!(error instanceof ConnectError)) throw error;
        // Where the connection is the lease, none was leased.
        if (endsWith !== 'request' && isRefusal(error)) acquisition.refuse(error);
        else if (++failures >= call.settings.connectAttempts) throw error;
      }
    }
  }

  #hold(acquired: Acquired<Session>): void {
    const { settings, isOwnContextUsed = settings.context === 'default' } = this.#plan;
    const { release } = settings;
    this.#browser = new HeldBrowser(this.#call.context, acquired, { release, isOwnContextUsed });
    this.#call.browser.sessionId = acquired.grant.id;
    this.#hooks.leased(this.context);
  }

  async #connect(): Promise<void> {
    const { connector, addedNames = ['session', 'signal'] } = this.#plan;
    if (!connector) return;
    const { context } = this;
    expectCdpUrl(context, this.#hooks.needsCdp);
    const additions = () => this.#hooks.connect(context);
    this.#link = await Link.open(context, { connector, additions, addedNames });
  }

  /**
   * Calls the callback, once. If its browser was lost, the call fails, whatever the callback returned.
   *
   * @param task The index of the task, if one lease runs many.
   */
  async runCallback<Value>(
    fn: Callback<Handles & HandlesOf<Features>, Value, Session>,
    task?: { index: number },
  ): Promise<Value> {
    const { link } = this;
    const lease: LeaseContext<LeaseStep<Session>, Session> = this.context;
    const { session, signal, sessionId, settings, pool, abort, emit, time, startTimeout } = lease;
    const facts = { pool: pool.idOrName, sessionId };
    const stopClock = startTimeout(settings.timeout, () =>
      abort(new CallbackTimeoutError(settings.timeout, facts)),
    );
    emit({ type: 'callback-started', sessionId });
    let status: 'ok' | 'failed' = 'failed';
    try {
      signal.throwIfAborted();
      const callFn = async () => fn({ ...this.handles, session, signal });
      const work = async () => {
        const returned = await raceAbort(this.#hooks.surround(callFn)(), signal);
        link.check();
        signal.throwIfAborted();
        return returned;
      };
      const value = await time('callback', work, task);
      status = 'ok';
      return value;
    } catch (error) {
      link.check();
      link.explain(error);
      throw error;
    } finally {
      stopClock();
      emit({ type: 'callback-ended', sessionId, status });
    }
  }

  /** Begins a run, a task or a test, for the features. The caller must end it. @param own Options of this part alone. */
  beginWork(part: WorkPart, own?: OwnOf<Features> & object): Promise<RunningWork<WorkResult<Features>>> {
    return this.#hooks.begin({ ...part, lease: this.context, connection: this.link.connection }, own);
  }

  /** Disconnects and leaves the browser leased. Resolves with what another process needs to continue. */
  async detach(): Promise<Handover<Session>> {
    const { signal, sessionId } = this.context;
    if (this.#ended) throw new LeaseOverError('The lease has ended.', { sessionId });
    signal.throwIfAborted();
    expectLasting(this.context, 'detach');
    await this.end({ status: 'ok', isDetached: true });
    return { ...this.browser.handover, features: this.#saved };
  }

  #endWithPool(): void {
    this.#call.onPoolClosed((error) => void this.end({ status: 'failed', error }));
  }

  /**
   * Ends the lease, once: the features collect what they want, the browser is cleaned, disconnected and released. A
   * step that fails does not prevent the next one. Never rejects.
   */
  end(outcome: LeaseEnd): Promise<LeaseSummary<Session> & SummaryOf<Features>> {
    if (!this.#ended) {
      this.#ended = this.#end(outcome);
      this.context.pool.client.background.track(this.#ended);
    }
    return this.#ended;
  }

  async #end({ isDetached = false, work, ...outcome }: LeaseEnd) {
    const { browser, context } = this;
    const { settings, session, signal, pool } = context;
    const { name = pool.idOrName } = settings;
    const leaves = isDetached || this.#plan.settings.release === 'leave';
    const connection = this.#link?.connection;
    const ending = { lease: context, connection, status: outcome.status, leaves };
    const step = endSteps(context);
    const features = (hook: EndHook) => this.#hooks.end(hook, ending);
    const cutIf = (isDue: boolean) => step('cut', () => isDue && connection?.cut());
    // After a timeout, the browser can still show why. After another abort the browser is lost, or the caller has left.
    const isReachable = () => !signal.aborted || signal.reason instanceof CallbackTimeoutError;
    let ended: Promise<object> | undefined;
    const endWork = () =>
      (ended ??= work?.end({ name, failed: outcome.status === 'failed', isReachable: isReachable() }));

    await step('close the link', () => this.#link?.close());
    // The callback may still run. Without a socket, it can't reach the browser of the next lease.
    await cutIf(!isReachable());
    if (signal.aborted) await step('end the work after an abort', endWork);
    await cutIf(signal.aborted);
    await features('stop');
    await step('collect', () => Promise.all([endWork(), features('collect')]));
    await cutIf(signal.aborted);
    const cleaning = async () => {
      const cleanUp = leaves ? false : browser.cleanUp(connection);
      const [healthy] = await Promise.all([cleanUp, features('cleaning')]);
      return healthy;
    };
    const healthy = (await step('clean', cleaning)) ?? false;
    if (isDetached) this.#saved = this.#hooks.save();
    await step('disconnect', () => connection?.disconnect(), DISCONNECT_TIMEOUT);
    // From now on no message can reach the browser, whatever the library reports.
    await cutIf(true);
    const choose = () => (leaves ? 'leave' : browser.choose({ ...outcome, healthy }));
    const choice = (await step('choose', choose)) ?? 'destroy';
    const release = async () => {
      const releasing = browser.release(choice, isDetached);
      return settings.awaitRelease || choice === 'leave' ? releasing : 'pending';
    };
    const released = (await step('release', release)) ?? 'failed';
    await features('released');

    const results = await ended;
    // A call whose signal aborted during the release rejects too.
    const late = settings.signal?.aborted ? { error: settings.signal.reason as unknown } : undefined;
    return this.#finish({ session, released, ...results }, outcome.status === 'failed' ? outcome : late);
  }

  /** Ends the call: emits its last event, and keeps its summary for `runOf`. */
  #finish<End extends Pick<FailedLease<Session>, 'session' | 'released'>>(
    end: End,
    failure?: { error?: unknown },
  ): Omit<LeaseSummary<Session>, 'session' | 'released'> & End & SummaryOf<Features> {
    const counts = this.#acquisition?.counts ?? { acquireAttempts: 0, unknownAcquires: 0 };
    const summary = { ...this.#hooks.summary(), ...end, ...counts, ...this.#call.facts };
    if (failure) rememberRun(failure.error, summary);
    const { emit }: CallContext<LeaseStep<Session>> = this.#call.context;
    emit({ type: 'ended', status: failure ? 'failed' : 'ok', summary, ...failure });
    this.#call.dispose();
    return summary;
  }

  /** Since `leased`. */
  get browser(): HeldBrowser<Session> {
    return this.#browser!;
  }

  /** Since `leased`: the facts about the call and its browser. */
  get context(): LeaseContext<AnyStep, Session> {
    return this.browser.context;
  }

  /** Since `connected`. */
  get link(): Link<Handles> {
    return this.#link!;
  }

  /** Since `connected`: the handles of the library over the present connection, and those of the features. */
  get handles(): Handles & HandlesOf<Features> & object {
    return { ...this.link.connection.handles, ...this.#hooks.handles(this.context) };
  }
}

/** No browser is available now, or the service can't be reached. */
function isRefusal({ status, unreachedBy }: ConnectError): boolean {
  return unreachedBy !== undefined || refusesUpgrade(status ?? 0);
}
