import { raceAbort, startTimer } from '../shared/abort.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { BrowserSession, Replay } from '../service/wire.js';
import { Recording } from './recording.js';
import type { RecordingEvent } from './recording-events.js';
import type { RecordingOptions } from './recording-options.js';
import { identify, statusOf, type ReplayResult } from './replay-status.js';
import { untilFinished } from './until-finished.js';

export interface LeaseReplaysParts {
  pool: BrowserPool;
  session: BrowserSession;
  /** What `earlier` told of the same lease before; by default it is listed now. */
  earlier?: readonly string[] | undefined;
  /** Milliseconds that all of it may take from the end of the lease's use on. */
  timeout: number;
  /** How to record the lease; without it, nothing is recorded. */
  recording?: RecordingOptions | undefined;
  onEvent: (event: RecordingEvent) => void;
}

/**
 * The recordings that were made during one lease. A browser keeps its session id from lease to lease, and its list
 * holds all of them; so the list at the start is taken off the list at the end, and both are made while we hold it.
 */
export class LeaseReplays {
  readonly #pool: BrowserPool;
  readonly #sessionId: string;
  readonly #timeout: number;
  readonly #earlier: Promise<Set<string>>;
  #earlierIds: readonly string[] | undefined;
  readonly #recording: Recording | undefined;
  readonly #abort = new AbortController();
  #timeLeft: number;

  /** Begins with listing what was there before, and with recording. */
  constructor({ pool, session, earlier, timeout, recording, onEvent }: LeaseReplaysParts) {
    const { signal } = this.#abort;
    this.#pool = pool;
    this.#sessionId = session.session_id;
    this.#timeout = timeout;
    this.#timeLeft = timeout;
    const listed = earlier
      ? Promise.resolve(earlier)
      : pool.replays(session.session_id, { signal }).then((replays) => replays.map(identify));
    this.#earlier = listed.then((ids) => new Set((this.#earlierIds = ids)));
    // Its failure shows in collect().
    this.#earlier.catch(() => {});
    this.#recording = recording && new Recording({ pool, session, options: recording, signal, onEvent });
  }

  get isRecording(): boolean {
    return this.#recording !== undefined;
  }

  /** What we record, once it has begun. */
  get started(): readonly Replay[] {
    return this.#withStarted([]);
  }

  /** Which recordings there were before the lease, once that is known. */
  get earlier(): readonly string[] | undefined {
    return this.#earlierIds;
  }

  /** Stops our recording, if there is one. Never rejects. */
  async stopRecording(): Promise<void> {
    await this.#inTime(async () => this.#recording?.stop()).catch(() => {});
  }

  /** The recordings of this lease; to be called before the release. Never rejects. */
  async collect(): Promise<ReplayResult> {
    try {
      return await this.#inTime(() => this.#list());
    } catch (error) {
      this.stop();
      return { replays: this.started, replayStatus: 'unavailable', error: error as Error };
    }
  }

  /**
   * Waits until the films of what we recorded are written, in the time that is left; to be called after the release,
   * for the browser need not wait for that. Which recordings are ours is settled before. Never rejects.
   */
  async finish(result: ReplayResult, signal: AbortSignal | undefined): Promise<ReplayResult> {
    if (result.replays.length === 0 || result.replayStatus === 'ready') return result;
    return untilFinished(this.#pool, this.#sessionId, { ours: result, timeout: this.#timeLeft, signal });
  }

  /** Ends what is still asked for: nobody waits for it, and it would hold a socket, and the end of the pool. */
  stop(): void {
    this.#abort.abort(new Error('Nobody waits for the recordings of this lease any more'));
  }

  async #list(): Promise<ReplayResult> {
    // One after the other: where the second overtakes the first, what was recorded in between counts as earlier.
    const earlier = await this.#earlier;
    const all = await this.#pool.replays(this.#sessionId, { signal: this.#abort.signal });
    // Ours may have started before the first list was made.
    const started = this.#recording?.replay;
    if (started) earlier.delete(identify(started));
    const replays = this.#withStarted(all.filter((replay) => !earlier.has(identify(replay))));
    const isRefused = this.#recording !== undefined && replays.length === 0;
    return { replays, replayStatus: isRefused ? 'unavailable' : statusOf(replays) };
  }

  /** Lists lag behind, or fail; the start of a recording told its link. */
  #withStarted(replays: readonly Replay[]): readonly Replay[] {
    const started = this.#recording?.replay;
    const id = started && identify(started);
    return id && !replays.some((replay) => identify(replay) === id) ? [...replays, started] : replays;
  }

  /** Work under the limit, which all steps share. */
  async #inTime<T>(work: () => Promise<T>): Promise<T> {
    const began = performance.now();
    const late = () => this.#abort.abort(new Error(`The replays took longer than ${this.#timeout} ms`));
    const timer = startTimer(this.#timeLeft, late);
    try {
      return await raceAbort(work(), this.#abort.signal);
    } finally {
      clearTimeout(timer);
      this.#timeLeft = Math.max(0, this.#timeLeft - (performance.now() - began));
    }
  }
}
