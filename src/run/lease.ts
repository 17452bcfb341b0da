import type { OpenConnection } from '../connect/connect-session.js';
import { BrowserLostError, CallbackTimeoutError, SweepError, type LossReason } from '../errors/index.js';
import type { LinkedAbort } from '../internal/linked-abort.js';
import { raceAbort, raceTimeout, startTimer } from '../internal/race.js';
import type { LeaseReplays, ReplayResult } from '../replays/lease-replays.js';
import { trackWork } from '../service/background.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { BrowserSession } from '../service/wire.js';
import { callInside } from './nesting.js';
import type { LeaseOutcome, ReleaseChoice } from './options.js';
import type { OwnedSession } from './owned-session.js';
import type { Recorder } from './recorder.js';
import type { RunTail } from './run.js';
import type { Callback } from './callback.js';
import type { Settings } from './settings.js';

/** Milliseconds for closing the pages and contexts of a lease, and for the answer of those that stay. */
const SWEEP_TIMEOUT = 5000;
/** Milliseconds for the driver to let go. The socket is cut after that. */
const DISCONNECT_TIMEOUT = 2000;

export interface LeaseParts<Handles> {
  pool: BrowserPool;
  owned: OwnedSession;
  connection: OpenConnection<Handles>;
  replays: LeaseReplays | undefined;
  settings: Settings;
  recorder: Recorder;
  /** Aborts when the lease must end: by the caller's signal, a time limit, or the loss of the browser. */
  abort: LinkedAbort;
  /** Which lease of the call this is, from 1. */
  attempt: number;
}

/** A leased and connected browser. Whoever holds it owes `end`. */
export class Lease<Handles> {
  readonly session: BrowserSession;
  readonly handles: Handles;
  readonly attempt: number;

  readonly #parts: LeaseParts<Handles>;
  #lost: BrowserLostError | undefined;
  #end: Promise<RunTail> | undefined;

  constructor(parts: LeaseParts<Handles>) {
    this.#parts = parts;
    this.session = parts.owned.session;
    this.handles = parts.connection.handles;
    this.attempt = parts.attempt;
    void parts.connection.ended.then((end) => end !== 'closed-by-us' && this.#onLost(end));
  }

  get signal(): AbortSignal {
    return this.#parts.abort.signal;
  }

  /** Calls the callback, once. A callback that lost its browser is no success, whatever it returned. */
  async call<Value>(fn: Callback<Handles, Value>): Promise<Value> {
    const { pool, recorder, settings, abort } = this.#parts;
    const { session, handles, signal, attempt } = this;
    const sessionId = session.session_id;
    const facts = { pool: pool.idOrName, sessionId };
    const timer = startTimer(settings.timeout, () =>
      abort.abort(new CallbackTimeoutError(settings.timeout, facts)),
    );
    recorder.tell({ type: 'callback-started', sessionId });
    let status: 'ok' | 'failed' = 'failed';
    try {
      signal.throwIfAborted();
      const calling = callInside(pool, session, async () => fn({ ...handles, session, signal, attempt }));
      const value = await recorder.time('callback', () => raceAbort(calling, signal));
      this.#checkConnected();
      signal.throwIfAborted();
      status = 'ok';
      return value;
    } catch (error) {
      this.#checkConnected();
      throw error;
    } finally {
      clearTimeout(timer);
      recorder.tell({ type: 'callback-ended', sessionId, status });
    }
  }

  /** A driver knows at once that the callback closed it; our end of its socket hears of it later. */
  #checkConnected(): void {
    if (!this.#parts.connection.isConnected()) this.#onLost('closed-by-callback');
  }

  /**
   * Sweeps, disconnects and gives the browser back; each step has its own limit, and no failure of one keeps
   * the next from happening. However often it is called, it happens once.
   */
  end(outcome: { status: 'ok' | 'failed'; error?: unknown }): Promise<RunTail> {
    if (!this.#end) {
      this.#end = this.#tearDown(outcome);
      trackWork(this.#parts.pool, this.#end);
    }
    return this.#end;
  }

  async #tearDown(outcome: { status: 'ok' | 'failed'; error?: unknown }): Promise<RunTail> {
    const { recorder, settings, owned, abort } = this.#parts;
    const { session } = this;
    const [healthy, { replays, replayStatus }] = await recorder.time('sweep', () =>
      Promise.all([this.#sweep(), this.#collectReplays()]),
    );
    await this.#disconnect();
    const choice = this.#chooseRelease({ ...outcome, healthy, session });
    const released = await owned.release(choice, settings.releaseTimeout);
    abort.dispose();
    const { attempts, unknownOutcomes, timings, cleanupErrors } = recorder;
    return { session, replays, replayStatus, released, attempts, unknownOutcomes, timings, cleanupErrors };
  }

  /** True when all that the lease opened is closed and what stays answers. */
  async #sweep(): Promise<boolean> {
    const { connection, abort, recorder, settings } = this.#parts;
    // After an abort the callback may still be at work: cut off, nothing of it reaches the next lease's browser.
    if (abort.signal.aborted) connection.cut();
    if (abort.signal.aborted || settings.release === 'leave') return false;
    const { session_id: sessionId } = this.session;
    // Not every driver notices that its socket is gone.
    const dropped = async () => {
      throw new SweepError(`The websocket ended (${await connection.ended})`, { sessionId });
    };
    const late = () => new SweepError(`The browser did not follow within ${SWEEP_TIMEOUT} ms`, { sessionId });
    try {
      await raceTimeout(SWEEP_TIMEOUT, () => Promise.race([connection.sweep(), dropped()]), late);
      recorder.tell({ type: 'swept', sessionId });
      return true;
    } catch (cause) {
      const error = new SweepError('Not all pages of the lease could be closed.', { sessionId, cause });
      recorder.cleanupErrors.push(error);
      recorder.tell({ type: 'swept', sessionId, error });
      return false;
    }
  }

  async #collectReplays(): Promise<ReplayResult> {
    const { replays, settings, recorder } = this.#parts;
    if (!replays) return { replays: [], replayStatus: 'off' };
    const result = await replays.collect(settings.replaysTimeout);
    if (result.error) recorder.cleanupErrors.push(result.error);
    recorder.tell({
      type: 'replays',
      sessionId: this.session.session_id,
      replays: result.replays,
      status: result.replayStatus,
      ...(result.error && { error: result.error }),
    });
    return result;
  }

  async #disconnect(): Promise<void> {
    const { connection } = this.#parts;
    const late = () => new Error(`The driver did not disconnect within ${DISCONNECT_TIMEOUT} ms`);
    const cut = async () => {
      connection.cut();
      await connection.ended;
    };
    // Whatever the driver says, the socket is gone afterwards, and that is what counts.
    await raceTimeout(DISCONNECT_TIMEOUT, () => connection.disconnect(), late).catch(() => {});
    await raceTimeout(DISCONNECT_TIMEOUT, cut, late).catch(() => {});
  }

  #chooseRelease(outcome: LeaseOutcome): ReleaseChoice {
    const { release: choice } = this.#parts.settings;
    if (choice !== 'auto' && typeof choice !== 'function') return choice;
    const auto = outcome.healthy ? 'reuse' : 'destroy';
    if (choice === 'auto') return auto;
    try {
      return choice(outcome);
    } catch (error) {
      this.#parts.recorder.cleanupErrors.push(error as Error);
      return auto;
    }
  }

  #onLost(reason: LossReason): void {
    // Once the end has begun, the socket ends at our own wish.
    if (this.#end || this.#lost) return;
    const { pool, abort, recorder } = this.#parts;
    const { session_id: sessionId } = this.session;
    this.#lost = new BrowserLostError(explainLoss(reason), reason, { pool: pool.idOrName, sessionId });
    recorder.tell({ type: 'browser-lost', sessionId, error: this.#lost });
    abort.abort(this.#lost);
  }
}

function explainLoss(reason: LossReason): string {
  const how = {
    dropped: 'its connection broke or fell silent',
    'closed-by-service': 'the other side closed the connection: the browser ended, or was taken away',
    expired: 'its session expired',
    'closed-by-callback': 'the callback closed the browser or its connection, which is ours to close',
  };
  return `The browser was lost: ${how[reason]}.`;
}
