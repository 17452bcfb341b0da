import { setTimeout as sleep } from 'node:timers/promises';
import { isTransientError } from '../service/status.js';
import type { BrowserSession, Replay } from '../service/wire.js';
import { LinkedAbort, raceAbort, raceTimeout, startTimer } from '../shared/abort.js';
import { duration } from '../shared/errors.js';
import { PoolServiceError } from '../shared/service-errors.js';
import type { LeaseCall } from './lease-call.js';
import { Recording } from './recording.js';
import type { ReplayResult, ReplayStatus } from './run.js';

/** Pauses between two lists while the service writes a video, in ms, and their growth. */
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 2000;
const GROWTH = 1.5;

/**
 * The recordings of one lease. A browser keeps its session id from lease to lease, and the service lists the recordings of
 * all of them; so the recordings that exist at the start are removed from the list at the end. Both lists are requested
 * while the browser is leased.
 */
export class LeaseReplays {
  readonly #call: LeaseCall;
  readonly #sessionId: string;
  readonly #earlier: Promise<Set<string>>;
  readonly #recording: Recording | undefined;
  readonly #abort = new AbortController();
  #earlierIds: readonly string[] | undefined;
  #timeLeft: number;

  /**
   * Lists the earlier recordings, and starts a recording if the options say so.
   *
   * @param earlier Ids of the earlier recordings, if they are known.
   */
  constructor(call: LeaseCall, session: BrowserSession, earlier?: readonly string[]) {
    const { signal } = this.#abort;
    const { replays, replaysTimeout } = call.settings;
    this.#call = call;
    this.#sessionId = session.session_id;
    this.#timeLeft = replaysTimeout;
    const listed = earlier ? Promise.resolve(earlier) : this.#list().then((all) => all.map(identify));
    this.#earlier = listed.then((ids) => new Set((this.#earlierIds = ids)));
    // `collect` reports the error.
    this.#earlier.catch(() => {});
    if (replays === 'record') this.#recording = new Recording(call, session, signal);
  }

  get isRecording(): boolean {
    return this.#recording !== undefined;
  }

  /** The recording of this lease, once it has started. */
  get started(): readonly Replay[] {
    return this.#withStarted([]);
  }

  /** Ids of the recordings from before this lease, once they are known. */
  get earlier(): readonly string[] | undefined {
    return this.#earlierIds;
  }

  /** Stops the recording. Never rejects. */
  async stopRecording(): Promise<void> {
    await this.#inTime(async () => this.#recording?.stop()).catch(() => {});
  }

  /** Lists the recordings of this lease, before the release. Never rejects. */
  async collect(): Promise<ReplayResult> {
    try {
      return await this.#inTime(() => this.#current());
    } catch (error) {
      this.stop();
      return { replays: this.started, replayStatus: 'unavailable', error: error as Error };
    }
  }

  /** Lists the recordings of this lease so far, within `replaysTimeout`. Never rejects. */
  async soFar(): Promise<readonly Replay[]> {
    const timeout = () => new Error('The service did not list the recordings in time.');
    const { replaysTimeout } = this.#call.settings;
    const listed = raceTimeout(replaysTimeout, () => this.#current(), timeout);
    return listed.then(
      ({ replays }) => replays,
      () => this.started,
    );
  }

  async #current(): Promise<ReplayResult> {
    // In this order: if the second list overtook the first, a recording in between would count as earlier.
    const earlier = await this.#earlier;
    const all = await this.#list();
    // This lease's recording may have started before the first list.
    const started = this.#recording?.replay;
    if (started) earlier.delete(identify(started));
    const replays = this.#withStarted(all.filter((replay) => !earlier.has(identify(replay))));
    const isRefused = this.#recording !== undefined && replays.length === 0;
    return { replays, replayStatus: isRefused ? 'unavailable' : statusOf(replays) };
  }

  /**
   * Waits until the videos of these recordings are written, after the release. Other recordings in the list belong to
   * later leases and are ignored. Never rejects.
   */
  async finish(result: ReplayResult): Promise<ReplayResult> {
    if (!this.#recording || result.replays.length === 0 || result.replayStatus === 'ready') return result;
    const limit = new LinkedAbort(this.#call.settings.signal, this.#timeLeft);
    const { signal } = limit;
    let latest = result;
    try {
      for (let pause = FIRST_PAUSE; ; pause = Math.min(LONGEST_PAUSE, pause * GROWTH)) {
        await sleep(pause, undefined, { signal });
        latest = await this.#refresh(latest, signal);
        const isFinal = latest.error instanceof PoolServiceError && !isTransientError(latest.error);
        if (latest.replayStatus === 'ready' || isFinal) return latest;
      }
    } catch {
      // The timeout has elapsed, or the caller has aborted.
      return latest;
    } finally {
      limit.dispose();
    }
  }

  /** Aborts all requests: an open request would keep a connection busy and delay `pool.close()`. */
  stop(): void {
    this.#abort.abort(new Error('The lease has ended, so its recordings are no longer needed.'));
  }

  async #refresh(result: ReplayResult, signal: AbortSignal): Promise<ReplayResult> {
    try {
      const all = await this.#list(signal);
      const replays = result.replays.map((replay) => latestOf(replay, all));
      return { replays, replayStatus: statusOf(replays) };
    } catch (error) {
      signal.throwIfAborted();
      return { ...result, error: error as Error };
    }
  }

  #list(signal: AbortSignal = this.#abort.signal): Promise<Replay[]> {
    return this.#call.pool.replays(this.#sessionId, { signal });
  }

  /** The service's list can be late or fail; the response to the start of the recording has its link. */
  #withStarted(replays: readonly Replay[]): readonly Replay[] {
    const started = this.#recording?.replay;
    const id = started && identify(started);
    return id && !replays.some((replay) => identify(replay) === id) ? [...replays, started] : replays;
  }

  /** All steps share `replaysTimeout`. */
  async #inTime<T>(work: () => Promise<T>): Promise<T> {
    const began = performance.now();
    const { replaysTimeout } = this.#call.settings;
    const timer = startTimer(this.#timeLeft, () =>
      this.#abort.abort(
        new Error(
          `The recordings were not available within ${duration(replaysTimeout)} (option replaysTimeout).`,
        ),
      ),
    );
    try {
      return await raceAbort(work(), this.#abort.signal);
    } finally {
      clearTimeout(timer);
      this.#timeLeft = Math.max(0, this.#timeLeft - (performance.now() - began));
    }
  }
}

function statusOf(replays: readonly Replay[]): ReplayStatus {
  if (replays.length === 0) return 'none';
  return replays.every((replay) => replay.finished_at !== undefined) ? 'ready' : 'pending';
}

/** Identifies a replay. The API requires no field of it, not even the id. */
function identify({ replay_id, replay_view_url, started_at }: Replay): string {
  return replay_id ?? replay_view_url ?? started_at ?? '';
}

function latestOf(replay: Replay, all: readonly Replay[]): Replay {
  const id = identify(replay);
  return (id && all.find((other) => identify(other) === id)) || replay;
}
