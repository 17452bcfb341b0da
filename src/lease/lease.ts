import type { Isolation, Workspace } from '../connect/connector.js';
import { CallbackTimeoutError } from '../shared/lease-errors.js';
import { InvalidOptionError, PooledBrowserError } from '../shared/errors.js';
import { type LinkedAbort, raceAbort, startTimer } from '../shared/abort.js';
import type { LeaseReplays } from './lease-replays.js';
import type { ReplayResult } from './replay-status.js';
import { trackWork } from '../service/background.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { BrowserSession, Replay } from '../service/wire.js';
import { DetachedLease } from './detached-lease.js';
import { disconnect, sweep } from './let-go.js';
import type { Link } from './link.js';
import { callInside } from './nesting.js';
import type { LeaseOutcome, ReleaseChoice } from './options.js';
import type { OwnedSession } from './owned-session.js';
import type { Recorder } from './recorder.js';
import type { RunTail } from './run.js';
import type { Callback } from './callback.js';
import type { Settings } from './settings.js';

export interface LeaseParts<Handles> {
  pool: BrowserPool;
  owned: OwnedSession;
  link: Link<Handles>;
  replays: LeaseReplays | undefined;
  settings: Settings;
  recorder: Recorder;
  /** Aborts when the lease must end: by the caller's signal, a time limit, or the loss of the browser. */
  abort: LinkedAbort;
  /** Which lease of the call this is, from 1. */
  attempt: number;
}

/** How a lease ends. */
interface LeaseEnd {
  status: 'ok' | 'failed';
  error?: unknown;
  /** The browser stays leased, as it is. */
  leave?: boolean;
}

/** A leased and connected browser. Whoever holds it owes `end`. */
export class Lease<Handles> {
  readonly session: BrowserSession;
  readonly attempt: number;

  readonly #parts: LeaseParts<Handles>;
  #end: Promise<RunTail> | undefined;

  constructor(parts: LeaseParts<Handles>) {
    this.#parts = parts;
    this.session = parts.owned.session;
    this.attempt = parts.attempt;
  }

  /** What the library hands out, over the present connection. */
  get handles(): Handles {
    return this.#parts.link.connection.handles;
  }

  get signal(): AbortSignal {
    return this.#parts.abort.signal;
  }

  /** The recording that is being made of it, once it has begun. */
  get recording(): readonly Replay[] {
    return this.#parts.replays?.started ?? [];
  }

  /** Calls `fn` with what the library hands out, over a connection that stands. */
  async use<Value>(fn: (handles: Handles) => Value | PromiseLike<Value>): Promise<Value> {
    return this.#parts.link.use(fn);
  }

  /** Replaces the connection. */
  async reconnect(): Promise<void> {
    return this.#parts.link.renew();
  }

  /** Disconnects, and leaves the release to whoever takes the lease up again. */
  async detach(): Promise<DetachedLease> {
    const { pool, abort, replays } = this.#parts;
    const { session } = this;
    abort.signal.throwIfAborted();
    if (this.#end) throw new PooledBrowserError('The lease is over.', 'ERR_LEASE_OVER');
    await this.end({ status: 'ok', leave: true });
    const earlierReplays = replays?.earlier;
    return new DetachedLease({ pool: pool.idOrName, baseUrl: pool.baseUrl, session, earlierReplays });
  }

  /**
   * Calls the callback, once. A callback that lost its browser is no success, whatever it returned.
   *
   * @param task Which one it is, where one lease has many.
   */
  async call<Value>(fn: Callback<Handles, Value>, task?: { index: number }): Promise<Value> {
    const { pool, recorder, settings, abort, link } = this.#parts;
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
      const call = () => callInside(pool, session, async () => fn({ ...handles, session, signal, attempt }));
      const work = async () => {
        const returned = await raceAbort(call(), signal);
        link.check();
        signal.throwIfAborted();
        return returned;
      };
      const value = await recorder.time('callback', work, task);
      status = 'ok';
      return value;
    } catch (error) {
      link.check();
      throw error;
    } finally {
      clearTimeout(timer);
      recorder.tell({ type: 'callback-ended', sessionId, status });
    }
  }

  /** Opens a place for tasks beside the others of this lease. */
  async openWorkspace(isolation: Isolation): Promise<Workspace<Handles>> {
    const { connection } = this.#parts.link;
    if (connection.openWorkspace) return connection.openWorkspace(isolation);
    throw new InvalidOptionError('connector', 'This connector opens no workspaces, which tasks run in.');
  }

  /**
   * Sweeps, disconnects and gives the browser back; each step has its own limit, and no failure of one keeps
   * the next from happening. However often it is called, it happens once.
   */
  end(outcome: LeaseEnd): Promise<RunTail> {
    if (!this.#end) {
      this.#parts.link.close();
      this.#end = this.#tearDown(outcome);
      trackWork(this.#parts.pool, this.#end);
    }
    return this.#end;
  }

  async #tearDown({ leave = false, ...outcome }: LeaseEnd): Promise<RunTail> {
    const { recorder, settings, abort, link } = this.#parts;
    const { session } = this;
    const leaves = leave || settings.release === 'leave';
    const { healthy, recorded } = await this.#finishUse(leaves);
    await disconnect(link.connection);
    const choice = leave ? 'leave' : this.#chooseRelease({ ...outcome, healthy, session });
    const released = await this.#release(choice);
    abort.dispose();
    const { replays, replayStatus } = await this.#finishReplays(recorded);
    const { attempts, unknownOutcomes, timings, cleanupErrors } = recorder;
    return { session, replays, replayStatus, released, attempts, unknownOutcomes, timings, cleanupErrors };
  }

  /** All that must be done while the browser is still ours. */
  async #finishUse(leaves: boolean): Promise<{ healthy: boolean; recorded: ReplayResult }> {
    const { replays, recorder } = this.#parts;
    this.#cutAfterAbort();
    if (replays?.isRecording) await recorder.time('replays', () => replays.stopRecording());
    const [healthy, recorded] = await Promise.all([
      !leaves && this.#sweep(),
      replays && recorder.time('replays', () => replays.collect()),
    ]);
    if (recorded) this.#tellReplays(recorded);
    return { healthy, recorded: recorded ?? { replays: [], replayStatus: 'off' } };
  }

  /** After an abort the callback may still be at work: cut off, nothing of it reaches the next lease's browser. */
  #cutAfterAbort(): void {
    const { abort, link } = this.#parts;
    if (abort.signal.aborted) link.connection.cut();
  }

  /** True when all that the lease opened is known to be closed and what stays answers. */
  async #sweep(): Promise<boolean> {
    const { link, abort, recorder } = this.#parts;
    const { session_id: sessionId } = this.session;
    this.#cutAfterAbort();
    if (abort.signal.aborted) return false;
    try {
      await recorder.time('sweep', () => sweep(link.connection, sessionId));
      recorder.tell({ type: 'swept', sessionId });
      return link.knowsAllPages;
    } catch (error) {
      recorder.cleanupErrors.push(error as Error);
      recorder.tell({ type: 'swept', sessionId, error: error as Error });
      return false;
    }
  }

  /** Gives the browser back, or begins to: the pool waits for what the caller does not. */
  async #release(choice: ReleaseChoice): Promise<RunTail['released']> {
    const { pool, settings, owned } = this.#parts;
    const released = owned.release(choice, settings.releaseTimeout);
    if (settings.awaitRelease || choice === 'leave') return released;
    trackWork(pool, released);
    return 'pending';
  }

  /** Waits for the films of this lease; by then the browser may be somebody else's. */
  async #finishReplays(recorded: ReplayResult): Promise<ReplayResult> {
    const { replays, settings, recorder } = this.#parts;
    if (!replays?.isRecording) return recorded;
    const finished = await recorder.time('replays', () => replays.finish(recorded, settings.signal));
    if (finished !== recorded) this.#tellReplays(finished);
    return finished;
  }

  #tellReplays({ replays, replayStatus: status, error }: ReplayResult): void {
    const { recorder } = this.#parts;
    if (error) recorder.cleanupErrors.push(error);
    const { session_id: sessionId } = this.session;
    recorder.tell({ type: 'replays', sessionId, replays, status, ...(error && { error }) });
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
}
