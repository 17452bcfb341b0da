import type { HeldLease } from '../service/held-leases.js';
import { leaseOf } from '../service/ownership.js';
import { INTERNALS } from '../service/pool-internals.js';
import type { BrowserSession } from '../service/wire.js';
import type { LinkedAbort } from '../shared/abort.js';
import type { ReleaseError } from '../shared/service-errors.js';
import type { Stage } from '../shared/telemetry.js';
import { acquireSession } from './acquire.js';
import type { LeaseCall } from './lease-call.js';
import { LeaseReplays } from './lease-replays.js';
import type { Released, ReleaseChoice, ReplayResult, RunSummary } from './run.js';

/** The outcome of the use of a lease. */
export interface LeaseEnd {
  status: 'ok' | 'failed';
  error?: unknown;
  /** Leave the browser leased and unchanged. */
  leave?: boolean;
}

/** The part of a connection that ends with its lease. Its methods never reject. */
export interface LeaseUse {
  collectArtifacts(outcome: LeaseEnd): Promise<void>;
  /** Closes what the lease opened. Resolves to true if the browser can be reused. */
  cleanUp(): Promise<boolean>;
  disconnect(): Promise<void>;
}

/**
 * A leased browser, from the response of the service to its release. It needs no connection: the command line leases
 * browsers for other programs. The holder of a lease must call `end` or `release`.
 */
export class Lease {
  readonly call: LeaseCall;
  readonly session: BrowserSession;
  /** Number of the lease within the call, from 1. */
  readonly attempt: number;
  readonly replays: LeaseReplays | undefined;

  readonly #held: HeldLease;
  readonly #countEnd: (released: Released) => void;
  #released: Promise<Released> | undefined;
  #ended: Promise<RunSummary> | undefined;

  /** Acquires a browser. After a failure nothing stays leased. */
  static async acquire(call: LeaseCall, deadline: LinkedAbort, attempt: number): Promise<Lease> {
    const work = async () => new Lease(call, await acquireSession(call, deadline), { attempt });
    const lease = await call.time('acquire', { attempt }, work, ({ session }) => ({
      sessionId: session.session_id,
    }));
    call.emit({ type: 'acquired', session: lease.session, attempt });
    return lease;
  }

  /** @param earlierReplays Ids of the recordings from before the lease, if they are known. */
  constructor(
    call: LeaseCall,
    session: BrowserSession,
    { attempt, earlierReplays }: { attempt: number; earlierReplays?: readonly string[] | undefined },
  ) {
    const { held, counters } = call.pool[INTERNALS];
    const { releaseOnCrash, replays } = call.settings;
    this.call = call;
    this.session = session;
    this.attempt = attempt;
    this.#held = held.hold(leaseOf(session), { onCrash: releaseOnCrash });
    this.#countEnd = counters.countLease();
    this.replays = replays === 'off' ? undefined : new LeaseReplays(call, session, earlierReplays);
  }

  get sessionId(): string {
    return this.session.session_id;
  }

  /** Adds the time of the work to a stage of the call, and traces it. */
  time<T>(stage: Stage, work: () => Promise<T>, task?: { index: number }): Promise<T> {
    const { attempt, sessionId } = this;
    return this.call.time(stage, { attempt, sessionId, ...task }, work);
  }

  /** Releases the browser, once. Never rejects: a browser that could not be released is reported. */
  release(choice: ReleaseChoice): Promise<Released> {
    this.#released ??= this.#release(choice);
    return this.#released;
  }

  /**
   * Ends the lease, once: stops the recording, collects the artifacts, cleans up, lists the recordings, disconnects,
   * releases. Each step has its own timeout, and no failure prevents the next step. Never rejects.
   */
  end(outcome: LeaseEnd, use?: LeaseUse): Promise<RunSummary> {
    if (!this.#ended) {
      this.#ended = this.#tearDown(outcome, use);
      this.call.pool[INTERNALS].background.track(this.#ended);
    }
    return this.#ended;
  }

  get hasEnded(): boolean {
    return this.#ended !== undefined;
  }

  async #tearDown({ leave = false, ...outcome }: LeaseEnd, use?: LeaseUse): Promise<RunSummary> {
    const { call, session, replays } = this;
    if (replays?.isRecording) await this.time('replays', () => replays.stopRecording());
    await use?.collectArtifacts(outcome);
    const [healthy = false, recorded = OFF] = await Promise.all([
      use?.cleanUp(),
      replays && this.time('replays', () => replays.collect()),
    ]);
    if (replays) this.#emitReplays(recorded);
    await use?.disconnect();
    const choice = leave ? 'leave' : this.#chooseRelease({ ...outcome, healthy, session });
    const released = await this.#releaseOrBegin(choice);
    const { replays: list, replayStatus } = await this.#finishReplays(recorded);
    const summary = { session, replays: list, replayStatus, released, ...call.counts };
    call.end(summary, this.#failureOf(outcome));
    return summary;
  }

  /** A call whose signal aborted during the release rejects too. */
  #failureOf({ status, error }: LeaseEnd): { error: unknown } | undefined {
    const { signal } = this.call.settings;
    if (status === 'failed') return { error };
    return signal?.aborted ? { error: signal.reason as unknown } : undefined;
  }

  #chooseRelease(outcome: Parameters<ReleaseFunction>[0]): ReleaseChoice {
    const { release: choice } = this.call.settings;
    if (choice !== 'auto' && typeof choice !== 'function') return choice;
    const auto = outcome.healthy ? 'reuse' : 'destroy';
    if (choice === 'auto') return auto;
    try {
      return choice(outcome);
    } catch (error) {
      this.call.cleanupErrors.push(error as Error);
      return auto;
    }
  }

  async #releaseOrBegin(choice: ReleaseChoice): Promise<RunSummary['released']> {
    const released = this.release(choice);
    if (this.call.settings.awaitRelease || choice === 'leave') return released;
    this.call.pool[INTERNALS].background.track(released);
    return 'pending';
  }

  async #release(choice: ReleaseChoice): Promise<Released> {
    if (choice === 'leave') this.#held.forget();
    const released = choice === 'leave' ? 'left' : await this.#requestRelease(choice === 'reuse');
    this.#countEnd(released);
    return released;
  }

  async #requestRelease(reuse: boolean): Promise<Released> {
    const { call, sessionId } = this;
    const { pool, settings } = call;
    const request = { reuse, timeout: settings.releaseTimeout };
    try {
      const released = await this.time('release', () => this.#held.release(request));
      call.emit({ type: 'released', pool: pool.idOrName, sessionId, released });
      return released;
    } catch (thrown) {
      const error = thrown as ReleaseError;
      call.cleanupErrors.push(error);
      call.emit({ type: 'release-failed', pool: pool.idOrName, sessionId, error });
      return error.released;
    }
  }

  /** Waits for the videos of this lease. The browser may already belong to another lease. */
  async #finishReplays(recorded: ReplayResult): Promise<ReplayResult> {
    const { replays } = this;
    if (!replays?.isRecording) return recorded;
    const finished = await this.time('replays', () => replays.finish(recorded));
    if (finished !== recorded) this.#emitReplays(finished);
    return finished;
  }

  #emitReplays({ replays, replayStatus: status, error }: ReplayResult): void {
    const { call, sessionId } = this;
    if (error) call.cleanupErrors.push(error);
    call.emit({ type: 'replays', sessionId, replays, status, ...(error && { error }) });
  }
}

type ReleaseFunction = Extract<LeaseCall['settings']['release'], (...args: never[]) => unknown>;

const OFF: ReplayResult = { replays: [], replayStatus: 'off' };
