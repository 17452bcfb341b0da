import type { OpenConnection } from '../drivers/connection.js';
import { raceAbort, raceTimeout } from '../shared/abort.js';
import { nextMacrotask, PausableTimers } from '../shared/clock.js';
import { asError, duration, InvalidOptionError } from '../shared/errors.js';
import {
  CallbackTimeoutError,
  CleanupError,
  LeaseExpiredError,
  LeaseOverError,
} from '../shared/lease-errors.js';
import type { Call } from './call.js';
import type { LeaseContext } from './context.js';
import type { AnyStep, LeaseStep } from './events.js';
import type { EndWork, FeatureSet, LeaseEnding, SummaryOf, Work, WorkPart, WorkResult } from './feature.js';
import type { HeldBrowser } from './held-browser.js';
import { expectKeptSession, overError, type Link } from './link.js';
import type { WorkWith } from './options.js';
import type { DetachedState, LeaseEnd } from './plan.js';
import type { LeaseSummary } from './summary.js';
import { writeFiles } from './write-files.js';

/** Time for the library to disconnect, in ms; then the socket is closed. */
const DISCONNECT_TIMEOUT = 2000;

/** Playwright passes a call on in the next macrotask, and the command of the call arrives here in the one after. */
const SENDING_MACROTASKS = 2;

/** A leased browser that another program uses. The holder must call `end`. */
export class Lease<Session extends object = object, Features extends FeatureSet = FeatureSet> {
  readonly features: Features;
  readonly browser: HeldBrowser<Session>;
  /** The facts about the call and its browser. */
  readonly context: LeaseContext<AnyStep, Session>;
  /** They stand still while the lease is paused. */
  readonly timers = new PausableTimers();
  protected readonly call: Call<Session, Features>;
  /** The run of the whole lease: resolves with the function that ends it. */
  protected run: Promise<EndWork> | undefined;
  /** Why the call has failed. Undefined before its end, and if it succeeded. */
  failure: { readonly error?: unknown } | undefined;
  readonly #link: Link<unknown> | undefined;
  #ended: Promise<LeaseSummary<Session> & SummaryOf<Features>> | undefined;

  constructor(call: Call<Session, Features>, browser: HeldBrowser<Session>, link?: Link<unknown>) {
    this.features = call.plan.features;
    this.browser = browser;
    this.context = browser.context;
    this.call = call;
    this.#link = link;
  }

  /** The lease itself, for the features. */
  get work(): Work {
    const { context: lease } = this;
    return { kind: 'lease', scope: 'browser', lease, connection: undefined, handles: undefined };
  }

  /** Whether the end has begun. */
  get isEnding(): boolean {
    return this.#ended !== undefined;
  }

  /** After a timeout, the browser can still show why. After another abort the browser is lost, or the caller has left. */
  get isReachable(): boolean {
    const { aborted, reason } = this.context.signal;
    return !aborted || reason instanceof CallbackTimeoutError || reason instanceof LeaseExpiredError;
  }

  /**
   * A person uses the browser: timers stand still, and features observe nothing, until the returned function is called. There is one
   * pause at a time. Neither rejects.
   */
  async pause(): Promise<(end: string) => Promise<void>> {
    const resumeTimers = this.timers.pause();
    const resume = await this.call.hooks.pause();
    return async (end) => {
      resumeTimers();
      await resume(end);
    };
  }

  /** Disconnects and leaves the browser leased. Resolves with what another process needs to continue. */
  async detach(): Promise<DetachedState<Session>> {
    const { signal } = this.context;
    if (this.#ended) throw this.#over();
    signal.throwIfAborted();
    expectKeptSession(this.context, 'detach');
    const noDetach = this.call.hooks.need('thisProcess');
    if (noDetach !== undefined) throw new InvalidOptionError('detach', noDetach);
    await this.end({ status: 'ok', isDetached: true });
    return { ...this.browser.detachedState, features: this.call.hooks.saved };
  }

  /**
   * Ends the lease, once: the features collect what they want, the browser is cleaned, disconnected and released. A part of
   * the end that fails does not prevent the next one. Never rejects.
   */
  end(outcome: LeaseEnd): Promise<LeaseSummary<Session> & SummaryOf<Features>> {
    return (this.#ended ??= this.#end(outcome));
  }

  async #end({ isDetached = false, isInUse = false, ...outcome }: LeaseEnd) {
    const { browser, context } = this;
    const { hooks, plan } = this.call;
    const { settings, session, signal, pool } = context;
    const { name = pool.idOrName } = settings;
    const leaves = isDetached || plan.settings.release === 'leave';
    const connection = this.#link?.connection;
    const attempt = attempting(context);
    const cutIf = async (isDue: boolean) => {
      if (!isDue) return;
      await writeFiles(context, connection);
      await attempt('cut', () => connection?.cut());
    };
    let ended: Promise<object> | undefined;
    const endRun = (endWork: EndWork) =>
      endWork({ name, failed: outcome.status === 'failed', isReachable: this.isReachable });
    // A run that could not begin has nothing to end.
    const endOnce = () => (ended ??= this.run?.then(endRun, () => ({})));

    await attempt('close the link', () => this.#link?.close());
    const handles = await attempt('list handles', () => connection?.openHandles?.());
    // The callback may still run. Without a socket, it can't reach the browser of the next lease.
    await cutIf(!this.isReachable);
    if (signal.aborted) await attempt('end the work after an abort', endOnce);
    await cutIf(signal.aborted);
    const ending = await this.#endingOf(outcome, leaves);
    await attempt('stop', () => Promise.all([endOnce(), hooks.stop(ending)]));
    await cutIf(signal.aborted);
    const released = await this.#leave({ ...outcome, isDetached, isInUse, ending, attempt, handles });
    await hooks.released();

    const results = await ended;
    // A call whose signal aborted during the release rejects too.
    const late = settings.signal?.aborted ? { error: settings.signal.reason } : undefined;
    this.failure = outcome.status === 'failed' ? outcome : late;
    return this.call.finish({ session, released, ...browser.origin, ...results }, this.failure);
  }

  /** Cleans the browser and releases it, or leaves it. With `awaitRelease: false`, the call ends before that. */
  async #leave({ isDetached, isInUse, ending, attempt, handles, ...outcome }: EndedUse) {
    const { browser, context } = this;
    const { settings, pool } = context;
    const { leaves } = ending;
    const connection = this.#link?.connection;
    const isLater = !settings.awaitRelease && !leaves;
    const endLibrary = () =>
      attempt('end handles', () => connection?.endHandles(handles ?? [], (cause) => this.#over(cause)));
    if (isLater) {
      await writeFiles(context, connection);
      // From now on the library can't reach the browser.
      await attempt('take over', () => connection?.takeOver());
      await endLibrary();
    }
    const cleaned = attempt('clean', async () => (leaves ? false : browser.cleanUp(connection)));
    const finished = this.call.hooks.finish(ending);
    const release = async () => {
      const healthy = (await cleaned) ?? false;
      await finished;
      // Files are written also if the browser is left.
      await writeFiles(context, connection);
      await browser.endPages(connection);
      await attempt('disconnect', () => connection?.disconnect(), DISCONNECT_TIMEOUT);
      // From now on no message can reach the browser, whatever the library reports.
      await attempt('cut', () => connection?.cut());
      if (!isLater) await endLibrary();
      const choose = () => (isDetached ? 'leave' : browser.choose({ ...outcome, healthy }, isInUse));
      const choice = (await attempt('choose', choose)) ?? 'destroy';
      return (await attempt('release', () => browser.release(choice, isDetached))) ?? 'failed';
    };
    const releasing = release();
    pool.client.background.track(releasing);
    await finished;
    return isLater ? 'pending' : releasing;
  }

  async #endingOf({ status, error }: LeaseEnd, leaves: boolean): Promise<LeaseEnding> {
    const connection = this.#link?.connection;
    for (let count = 0; connection && count < SENDING_MACROTASKS; count++) await nextMacrotask();
    const methodsInFlight = connection?.socket.methodsInFlight ?? [];
    const isOfTasks = this.call.plan.isForTasks === true;
    return { lease: this.context, connection, status, error, isOfTasks, leaves, methodsInFlight };
  }

  /** @param cause Of a method of the library's page, browser, … */
  #over(cause?: unknown): LeaseOverError {
    // The methods of a handle call each other.
    return cause instanceof LeaseOverError ? cause : overError(this.context, cause);
  }
}

/** What the last part of the end of a lease needs. */
interface EndedUse extends LeaseEnd {
  readonly isInUse: boolean;
  readonly ending: LeaseEnding;
  readonly attempt: ReturnType<typeof attempting>;
  readonly handles: Iterable<object> | undefined;
}

/** A leased browser with the connection of a library. */
export class ConnectedLease<
  Handles,
  Session extends object = object,
  Features extends FeatureSet = FeatureSet,
> extends Lease<Session, Features> {
  readonly link: Link<Handles>;

  constructor(call: Call<Session, Features>, browser: HeldBrowser<Session>, link: Link<Handles>) {
    super(call, browser, link);
    this.link = link;
  }

  override get work(): Work {
    const connection: OpenConnection<unknown> = this.link.connection;
    return { ...super.work, connection, handles: this.handles as object };
  }

  /** The handles of the library over the present connection. */
  get handles(): Handles {
    return this.link.connection.handles;
  }

  /** Begins the run of the whole lease, for the features. It ends with the lease, whoever ends that. */
  async beginRun(): Promise<void> {
    this.context.signal.throwIfAborted();
    const run = this.call.hooks.begin({ ...this.work, kind: 'run' });
    this.run = run;
    await run;
  }

  /** Begins a task or a test, for the features. The caller must call the function that ends it. */
  beginWork(part: WorkPart): Promise<EndWork<WorkResult<Features>>> {
    return this.call.hooks.begin({ ...this.work, ...part });
  }

  /**
   * Calls the callback, once. If its browser was lost, the call fails, whatever the callback returned.
   *
   * @param task The index of the task, if one lease runs many.
   */
  async runCallback<Value>(fn: WorkWith<Handles, Value, Session>, task?: { index: number }): Promise<Value> {
    const { link } = this;
    const lease: LeaseContext<LeaseStep<Session>, Session> = this.context;
    const { session, signal, sessionId, settings, pool, abort, emit, time } = lease;
    const facts = { pool: pool.idOrName, sessionId };
    const stopTimer = this.timers.start(settings.timeout, () =>
      abort(new CallbackTimeoutError(settings.timeout, facts)),
    );
    emit({ type: 'callback-started', sessionId });
    let status: 'succeeded' | 'failed' = 'failed';
    try {
      signal.throwIfAborted();
      const callFn = async () => fn({ ...this.handles, session, signal });
      const work = async () => {
        const returned = await raceAbort(callFn(), signal);
        link.check();
        signal.throwIfAborted();
        return returned;
      };
      const value = await time('callback', work, task);
      status = 'succeeded';
      return value;
    } catch (error) {
      link.check();
      link.explain(error);
      throw error;
    } finally {
      stopTimer();
      emit({ type: 'callback-ended', sessionId, status });
    }
  }
}

/**
 * Returns a function that takes a part of the end of a lease. The part may throw, reject or hang: the function never rejects, so
 * that the next part follows. It resolves to undefined then.
 */
function attempting({ sessionId, addError }: Pick<LeaseContext, 'sessionId' | 'addError'>) {
  /**
   * @param name For the error.
   * @param timeout Longest time in ms. Default: none, for a part that has timeouts of its own.
   */
  return async <Result>(
    name: string,
    take: () => Result | Promise<Result>,
    timeout = Number.POSITIVE_INFINITY,
  ): Promise<Result | undefined> => {
    const late = () => new Error(`it took longer than ${duration(timeout)}`);
    try {
      return await raceTimeout(timeout, async () => take(), late);
    } catch (cause) {
      const message = `A step of the end of the lease failed (${name}): ${asError(cause).message}`;
      addError(new CleanupError(message, { sessionId, cause }));
      return undefined;
    }
  };
}
