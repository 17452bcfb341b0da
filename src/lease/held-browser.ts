import { BrowserState, type CleanOptions } from '../clean/browser-state.js';
import type { LoadDrivers, OpenConnection } from '../drivers/connection.js';
import { inTime } from './in-time.js';
import type { PendingRelease } from '../pool/pending-releases.js';
import { leasesAgain } from '../services/browser-service.js';
import { LinkedAbort } from '../shared/abort.js';
import { asError, InvalidOptionError } from '../shared/errors.js';
import { showValue } from '../shared/json.js';
import { CleanupError } from '../shared/lease-errors.js';
import { uncleanBrowsers } from '../shared/process-state.js';
import { ReleaseError } from '../shared/service-errors.js';
import { webPage } from '../shared/urls.js';
import type { Acquired, AcquireCounts } from './acquire.js';
import type { Call } from './call.js';
import type { LeaseContext } from './context.js';
import type { AnyStep, LeaseStep } from './events.js';
import type { ReleaseOption } from './options.js';
import type { DetachedState } from './plan.js';
import { isReleaseChoice, type LeaseOutcome, type Released, type ReleaseChoice } from './summary.js';

/** Time for closing the contexts of a lease, in ms. */
const CLOSE_TIMEOUT = 5000;
/**
 * Time for cleaning the browser, in ms: the worst that a busy machine may cost. Each command of the cleaning has a shorter timeout,
 * so that a browser that does not respond costs less.
 */
const CLEAN_TIMEOUT = 20_000;

/** A browser to hold, and its number within the call, from 1. */
export type Held<Session extends object> = Omit<Acquired<Session>, 'confirm'> & { readonly attempt: number };

/** A leased browser, until its release: what is left in it, and whether another lease may use it. */
export class HeldBrowser<Session extends object> {
  readonly context: LeaseContext<AnyStep, Session>;
  /** Resolves when the release begins. */
  readonly releasing: Promise<void>;
  /** The lease was connected. */
  #wasReached = false;
  /** Nobody has tried to use the browser. */
  #isUntouched = true;
  #onReleasing = () => {};
  #mayBeReused = true;
  /** A page may run without its limit, whatever the caller wants. */
  #mustBeDestroyed = false;
  /** Another program, which had attached to the lease, has released the browser. */
  #isOver = false;
  readonly #acquired: Held<Session>;
  readonly #pending: PendingRelease;
  readonly #release: ReleaseOption<Session>;
  readonly #loadDrivers: LoadDrivers;
  readonly #abandoned = new LinkedAbort();

  constructor({ context: call, plan }: Pick<Call<Session>, 'context' | 'plan'>, acquired: Held<Session>) {
    const { grant, lease, ticket, servedAt, pool, attempt } = acquired;
    const { idOrName } = pool;
    const emit = (step: AnyStep) => call.emit({ pool: idOrName, ...step } as AnyStep);
    const { settings, isOwnContextUsed = settings.context === 'default' } = plan;
    const { release } = settings;
    this.#acquired = acquired;
    this.#release = release;
    this.#loadDrivers = plan.loadDrivers;
    const { releaseOnCrash: onCrash } = settings;
    this.#pending = pool.releases.hold(grant.id, ticket, { onCrash, emit });
    this.releasing = new Promise((resolve) => (this.#onReleasing = resolve));
    const isCleaned = release === 'auto' || typeof release === 'function';
    const state = new BrowserState({
      isOwnContextGiven: isOwnContextUsed,
      // Otherwise the caller wants the browser as it is, or its logins.
      mayReplaceOwnContext: isCleaned && grant.hasProfile !== true,
      onPermanent: (what) => {
        // Once: the caller reads it.
        if (!isCleaned || !this.#mayBeReused) return;
        this.context.preventReuse(`The lease left ${what} in the browser, which no command removes.`);
      },
    });
    this.context = {
      ...call,
      signal: call.signal,
      emit,
      time: (stage, work, task) =>
        call.time(stage, work, { pool: idOrName, attempt, sessionId: grant.id, ...task }),
      pool,
      grant,
      session: grant.session,
      sessionId: grant.id,
      service: {
        facts: pool.service,
        local: pool.local,
        servedAt,
        requests: pool.api,
        pool: pool.idOrName,
        lease,
        liveViewUrl: webPage(grant.liveViewUrl, pool.client.trust),
        openInFirstPage: (url) => this.#openInFirstPage(url),
      },
      abandoned: this.#abandoned.signal,
      state,
      onOwnContextUsed: state.touchOwnContext,
      preventReuse: (why, cause) => {
        this.#mayBeReused = false;
        this.#reportUnclean(why, cause);
      },
    };
  }

  /**
   * What ends the session: a release request; the end of its connection, which is the lease; or nothing. Then the browser stays
   * open, and the next lease uses it, too.
   */
  get endsWith(): 'request' | 'connection' | 'nothing' {
    if (this.#acquired.ticket) return 'request';
    return this.#acquired.grant.endsWithConnection === true ? 'connection' : 'nothing';
  }

  /** The acquire requests of the call, and the pool that leased the browser. */
  get origin(): AcquireCounts & { readonly pool: string } {
    const { counts, pool } = this.#acquired;
    return { ...counts, pool: pool.idOrName };
  }

  /** What another process needs to continue the lease, without the part of the features. */
  get detachedState(): Omit<DetachedState<Session>, 'features'> {
    const { grant, lease, isMarkShown } = this.#acquired;
    const left = { ...this.context.state.leftovers, mayBeReused: this.#mayBeReused };
    return { grant, lease, isMarkShown, left };
  }

  /** Continues with what the lease left in another process. */
  continue({ mayBeReused, ...left }: DetachedState['left']): void {
    this.#isUntouched = false;
    this.context.state.continue(left);
    this.#mayBeReused &&= mayBeReused;
  }

  /** The lease is connected: from now on the service is waited for, also where no request is sent. */
  noteReached(): void {
    this.#wasReached = true;
    this.context.pool.client.host.reachability.connected();
  }

  /** Removes what an earlier lease of this process left in a browser that nothing could destroy. */
  async cleanFirst(): Promise<void> {
    this.#isUntouched = false;
    const how = this.endsWith === 'nothing' ? uncleanBrowsers.get(this.#address) : undefined;
    if (!how) return;
    const { settings, signal, grant, time } = this.#lease;
    const drivers = await this.#loadDrivers();
    const { trust } = this.context.pool.client;
    await time('connect', () => drivers.cleanSession(grant, { settings, trust, signal }, how));
    uncleanBrowsers.delete(this.#address);
  }

  /** Ends what runs beside the connect, and releases the browser, to which no lease is connected. Never rejects. */
  abandon(isDetached = false): Promise<Released> {
    this.#abandoned.abort(new Error('The browser was abandoned.'));
    if (isDetached || this.endsWith === 'nothing') return this.release('leave', isDetached);
    return this.release(this.#isUntouched ? 'reuse' : 'destroy');
  }

  /** Closes what the lease opened, and cleans the browser if it may be reused. Resolves to true if it can be. Never rejects. */
  async cleanUp(connection: OpenConnection<unknown> | undefined): Promise<boolean> {
    const { signal, sessionId, emit, time } = this.#lease;
    if (signal.aborted || !connection) return false;
    const release = this.#release;
    const isKept = release === 'reuse' || (release === 'destroy' && this.endsWith !== 'nothing');
    const clean = async () => {
      await inTime(connection, CLOSE_TIMEOUT, () => connection.cleanup());
      this.#isOver = await this.#pending.isOver();
      if (this.#isOver) throw new Error('Another program has released the browser.');
      const how = this.#cleanOptions;
      if (!this.#canBeReused || isKept) return;
      // The windows of a person's own browser are theirs to place.
      if (this.context.state.hasChangedOwnWindow && this.endsWith !== 'nothing')
        throw new Error('The lease changed a window, which stays as it is.');
      await inTime(connection, CLEAN_TIMEOUT, () => connection.clean(how));
    };
    try {
      await time('cleanup', clean);
      emit({ type: 'cleaned-up', sessionId });
      return this.#canBeReused;
    } catch (cause) {
      const text = 'Not all pages, contexts and data of the lease could be removed.';
      emit({ type: 'cleaned-up', sessionId, error: this.#reportUnclean(text, cause) });
      return false;
    }
  }

  /** Closes the pages that a feature limits, also of a browser that is left or reused as it is. Never rejects. */
  async endPages(connection: OpenConnection<unknown> | undefined): Promise<void> {
    try {
      await connection?.endPages();
    } catch (cause) {
      this.#mustBeDestroyed = true;
      const text =
        'Pages of the lease may still run without the limit of its hosts: the browser is destroyed.';
      // A lost browser has reported why.
      if (!this.#lease.signal.aborted) this.#reportUnclean(text, cause);
    }
  }

  /** What to do with the browser, by the option `release`. @param isInUse Another program may go on to use it. */
  choose(outcome: Omit<LeaseOutcome, 'session'>, isInUse = false): ReleaseChoice {
    this.#mustBeDestroyed ||= isInUse;
    const mustBeDestroyed = this.#mustBeDestroyed && !this.#isOver;
    const chosen = this.#isOver ? 'leave' : this.#chosen(outcome);
    if (chosen !== 'destroy' || this.endsWith !== 'nothing') return chosen;
    if (outcome.healthy && !mustBeDestroyed) return 'reuse';
    // Nothing can destroy the browser: the next lease of this process cleans it first.
    uncleanBrowsers.set(this.#address, this.#cleanOptions);
    this.#reportUnclean(
      'The browser stays open with data of this lease, because nothing can destroy it. The next lease of this process ' +
        'removes the data, or fails.',
    );
    return 'leave';
  }

  /** Releases the browser; must be called once. Never rejects: a browser that could not be released is reported. */
  async release(choice: ReleaseChoice, isDetached = false): Promise<Released> {
    const { sessionId, settings, time, addError, pool } = this.context;
    const { free } = this.#acquired;
    this.#onReleasing();
    if (choice === 'leave') {
      this.#pending.forget();
      // Nothing but this place keeps other leases away from a browser without a service.
      if (isDetached && this.endsWith === 'nothing') pool.gate.keep(sessionId, free);
      else free();
      return 'left';
    }
    const request = { reuse: choice === 'reuse' && this.#isLeasedAgain, timeout: settings.releaseTimeout };
    try {
      const released = await time('release', () => this.#pending.release(request));
      // A connection that was refused has leased nothing.
      free(this.#wasReached || this.endsWith === 'request');
      return released;
    } catch (error) {
      addError(asError(error));
      return error instanceof ReleaseError ? error.released : 'unknown';
    } finally {
      free();
    }
  }

  #chosen(outcome: Omit<LeaseOutcome, 'session'>): ReleaseChoice {
    if (this.#mustBeDestroyed) return 'destroy';
    const release = this.#release;
    if (release !== 'auto' && typeof release !== 'function') return release;
    const auto = outcome.healthy ? 'reuse' : 'destroy';
    if (release === 'auto') return auto;
    const { session, addError } = this.#lease;
    try {
      const choice: unknown = release({ ...outcome, session });
      if (isReleaseChoice(choice)) return choice;
      if (choice === 'auto') return auto;
      const message = `The function release must return 'auto', 'reuse', 'destroy' or 'leave', not ${showValue(choice)}.`;
      throw new InvalidOptionError('release', message);
    } catch (error) {
      addError(asError(error));
      return auto;
    }
  }

  get #cleanOptions(): CleanOptions {
    return this.context.state.cleanOptions(this.endsWith !== 'nothing');
  }

  /** Each session of some services has one lease: nothing of them is reused. */
  get #isLeasedAgain(): boolean {
    return leasesAgain(this.context.pool.service) || this.endsWith === 'nothing';
  }

  /** The logins of a profile would be lost with the data of its context. */
  get #canBeReused(): boolean {
    const { hasProfile } = this.#lease.grant;
    const losesLogins =
      hasProfile === true && this.context.state.isOwnContextUsed && this.#release !== 'reuse';
    return this.#isLeasedAgain && !losesLogins && this.#mayBeReused;
  }

  /** The context, for the events of the heart. */
  get #lease(): LeaseContext<LeaseStep<Session>, Session> {
    return this.context;
  }

  /** Where a browser without a service is. */
  get #address(): string {
    const { cdpUrl, bidiUrl } = this.#acquired.grant;
    return cdpUrl ?? bidiUrl ?? '';
  }

  async #openInFirstPage(url: string): Promise<void> {
    const { grant, signal, pool } = this.context;
    if (grant.endsWithConnection)
      throw new Error('The browser begins and ends with the connection of its user.');
    const { trust } = pool.client;
    const drivers = await this.#loadDrivers();
    await drivers.openUrl(grant, { trust, signal }, url);
  }

  #reportUnclean(message: string, cause?: unknown): CleanupError {
    const { sessionId, addError } = this.#lease;
    const error = new CleanupError(message, { sessionId, cause });
    addError(error);
    return error;
  }
}
