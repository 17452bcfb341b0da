import type { FeatureContext } from '../../lease/feature.js';
import type { StepOf } from '../../shared/telemetry.js';
import { isTransientError } from '../../net/status.js';
import { leasesAgain, type Replay } from '../../services/browser-service.js';
import { LinkedAbort, raceAbort, raceTimeout } from '../../shared/abort.js';
import { backoff, clock, delay, startTimer } from '../../shared/clock.js';
import { asError, duration } from '../../shared/errors.js';
import { PoolServiceError } from '../../shared/service-errors.js';
import type { EndOptions } from '../../lease/options.js';
import {
  isByClient,
  recordingOf,
  type ReplaysResult,
  type ReplaysSettings,
  type ReplaysSteps,
  type ReplayStatus,
} from './options.js';

export type ReplaysStep = StepOf<ReplaysSteps>;
/** The options that the recordings need. */
export type ReplaysPlan = ReplaysSettings & Pick<EndOptions, 'signal'>;

/** Pauses between two lists while the service writes a video. */
const WRITING = { factor: 1.5, minTimeout: 100, maxTimeout: 2000, randomize: false };
/** Pauses before a list that failed is requested again, and how often. */
const RETRY = { factor: 2, minTimeout: 200, maxTimeout: 1000, randomize: true };
const MOST_RETRIES = 2;
/** A recording that began this number of ms before the service answered can be the service's own for our lease. */
const LONGEST_START = 1000;

/** A list of recordings, and why it is missing or may be out of date. */
export interface Listed extends ReplaysResult {
  readonly error?: Error;
}

/**
 * The recordings of one lease. A browser can keep its session id from lease to lease, and the service lists the recordings of
 * all of them; so the recordings that exist at the start are removed from the list at the end. Both lists are requested
 * while the browser is leased.
 */
export class Recordings {
  readonly #lease: FeatureContext<ReplaysStep>;
  readonly #settings: ReplaysPlan;
  /** The recordings at the beginning of the lease. */
  #first: Promise<readonly Replay[]> = Promise.resolve([]);
  /** A recording that the service seems to have started by itself for this lease. */
  #own: Replay | undefined;
  readonly #abort = new LinkedAbort();
  #starting: Promise<void> | undefined;
  /** The recording that this lease started, as the service described it at its start. */
  #recording: Replay | undefined;
  #earlierIds: readonly string[] | undefined;
  #timeLeft: number;

  constructor(lease: FeatureContext<ReplaysStep>, settings: ReplaysPlan) {
    this.#lease = lease;
    this.#settings = settings;
    this.#timeLeft = settings.replaysTimeout;
  }

  /**
   * Lists the earlier recordings, and starts a recording if the options say so.
   *
   * @param earlier Ids of the earlier recordings, if they are known.
   * @param onRefused Called if the service does not record, although it was asked to.
   */
  begin(earlier: readonly string[] | undefined, onRefused: () => void): void {
    const known = earlier?.map((id): Replay => ({ replay_id: id }));
    // Otherwise, a session of this service has one lease.
    const isLeasedAgain = leasesAgain(this.#lease.service.facts);
    const listed = known ?? (isLeasedAgain ? this.#list() : []);
    this.#first = Promise.resolve(listed);
    // `collect` reports the error.
    this.#first.then(
      (first) => (this.#earlierIds = this.#earlierIn(first, first)),
      () => {},
    );
    if (this.isRecording) this.#starting = this.#start(onRefused);
  }

  /** The service is asked to record. */
  get isRecording(): boolean {
    return (
      this.#settings.replays === 'record' && !isByClient(recordingOf(this.#settings), this.#lease.service)
    );
  }

  /** The recording of this lease, once it has started. */
  get started(): readonly Replay[] {
    return this.#withStarted([]);
  }

  /** Ids of the recordings from before this lease, once they are known. */
  get earlier(): readonly string[] | undefined {
    return this.#earlierIds;
  }

  /** Stops the recording, after its start. Never rejects. */
  async stopRecording(): Promise<void> {
    await this.#inTime(() => this.#stopStarted()).catch(() => {});
  }

  /** Lists the recordings of this lease, before the release. Never rejects. */
  async collect(): Promise<Listed> {
    try {
      return await this.#inTime(() => this.#current());
    } catch (error) {
      this.abort();
      return { replays: this.started, replayStatus: 'unavailable', error: asError(error) };
    }
  }

  /** Lists the recordings of this lease so far, within `replaysTimeout`. Never rejects. */
  async soFar(): Promise<readonly Replay[]> {
    return raceTimeout(this.#settings.replaysTimeout, () => this.#current()).then(
      ({ replays }) => replays,
      () => this.started,
    );
  }

  /**
   * Deletes these recordings at the service, if it can, after their videos are written. What could not be deleted stays in the
   * result. Never rejects.
   */
  async remove(result: Listed): Promise<Listed> {
    const written = await this.finish(result);
    if (!this.isRecording || !this.#lease.service.facts.replays?.delete) return written;
    const limit = new LinkedAbort(this.#settings.signal, this.#timeLeft);
    const errors = await Promise.all(written.replays.map((replay) => this.#delete(replay, limit)));
    limit.dispose();
    for (const error of errors) if (error) this.#lease.addError(error);
    const replays = written.replays.filter((_replay, index) => errors[index] !== undefined);
    return { ...written, replays, replayStatus: statusOf(replays) };
  }

  /**
   * Waits until the videos of these recordings are written, after the release. Other recordings in the list belong to
   * later leases and are ignored. Never rejects.
   */
  async finish(result: Listed): Promise<Listed> {
    if (!this.isRecording || result.replays.length === 0 || result.replayStatus === 'ready') return result;
    const limit = new LinkedAbort(this.#settings.signal, this.#timeLeft);
    const { signal } = limit;
    let latest = result;
    try {
      for (let attempt = 1; ; attempt++) {
        await delay(backoff(WRITING, attempt), signal);
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
  abort(): void {
    this.#abort.abort(new Error('The lease has ended, so its recordings are no longer needed.'));
  }

  async #current(): Promise<Listed> {
    // In this order: if the second list overtook the first, a recording in between would count as earlier.
    const first = await this.#first;
    const all = await this.#list();
    const earlier = this.#earlierIn(first, all);
    this.#earlierIds = earlier;
    const replays = this.#withStarted(all.filter((replay) => !earlier.includes(identify(replay))));
    const isRefused = this.isRecording && replays.length === 0;
    return { replays, replayStatus: isRefused ? 'unavailable' : statusOf(replays) };
  }

  /** The ids of the recordings in the first list that do not belong to this lease. */
  #earlierIn(first: readonly Replay[], latest: readonly Replay[]): string[] {
    const ours = this.#recording && identify(this.#recording);
    // The service's date has whole seconds: what began a second later began in this lease, also if the first list came late.
    const began = (this.#lease.service.servedAt ?? Number.NaN) + 1000;
    // This lease's recording may have started before the first list.
    const others = first.filter((replay) => identify(replay) !== ours && !(startOf(replay) >= began));
    const own = ownOf(others, this.#lease.service.servedAt);
    // While the lease lasts, its own recording runs: such a one was still being written for the lease before. One that is
    // still unfinished at the end can belong to either lease: nothing that the service returns distinguishes them.
    this.#own = own && endedBefore(latestOf(own, latest), began) ? undefined : own;
    return others.filter((replay) => replay !== this.#own).map(identify);
  }

  /** What ended before this lease recorded was still being written for the lease before. */
  #isEarlier(replay: Replay): boolean {
    const isOwn = this.#own && identify(replay) === identify(this.#own);
    return isOwn === true && endedBefore(replay, startOf(this.#recording));
  }

  async #refresh(result: Listed, signal: AbortSignal): Promise<Listed> {
    try {
      const all = await this.#list(signal);
      const latest = result.replays.map((replay) => latestOf(replay, all));
      const replays = latest.filter((replay) => !this.#isEarlier(replay));
      return { replays, replayStatus: statusOf(replays) };
    } catch (error) {
      signal.throwIfAborted();
      return { ...result, error: asError(error) };
    }
  }

  /** Resolves with the error if a recording was not deleted. */
  async #delete({ replay_id: id }: Replay, limit: LinkedAbort): Promise<Error | undefined> {
    const { service, sessionId } = this.#lease;
    const { signal } = limit;
    try {
      if (id === undefined) throw new Error('The service returned no id for the recording, so it stays.');
      await persist(signal, () => service.requests.deleteReplay(sessionId, id, { signal }));
      return undefined;
    } catch (error) {
      // The response to an earlier request was lost.
      if (error instanceof PoolServiceError && error.status === 404) return undefined;
      if (!limit.timedOut) return asError(error);
      const within = duration(this.#settings.replaysTimeout);
      return new Error(
        `The recording was not deleted within ${within} (option replaysTimeout), so it stays.`,
      );
    }
  }

  /** Lists all recordings of the session. A fault that may pass does not lose the links. */
  async #list(signal: AbortSignal = this.#abort.signal): Promise<readonly Replay[]> {
    const { service, sessionId } = this.#lease;
    if (!service.facts.replays) return [];
    const all = await persist(signal, () => service.requests.replays(sessionId, { signal }));
    // A service does not say what this process has recorded.
    return all.map(({ recorded_by: _by, ...replay }) => replay);
  }

  async #start(onRefused: () => void): Promise<void> {
    const { service, sessionId, emit } = this.#lease;
    const { replays } = service.facts;
    const { by, frameRate, maxDuration } = recordingOf(this.#settings);
    if (by === 'auto' && !replays) return onRefused();
    // Such a service records from the beginning, if the acquire request says so.
    if (replays && !replays.start) return;
    const isLimited = maxDuration !== undefined && maxDuration < Number.POSITIVE_INFINITY;
    const maxSeconds = isLimited ? Math.ceil(maxDuration / 1000) : undefined;
    const { signal } = this.#abort;
    try {
      const start = service.requests.startReplay(sessionId, { frameRate, maxSeconds }, { signal });
      this.#recording = await raceAbort(start, signal);
      emit({ type: 'recording-started', sessionId, replay: this.#recording });
    } catch (error) {
      if (by === 'auto' && !signal.aborted) return onRefused();
      this.#fail({ type: 'recording-unavailable', sessionId, error: asError(error) });
    }
  }

  async #stopStarted(): Promise<void> {
    await this.#starting;
    const replay = this.#recording;
    if (!replay) return;
    const { service, sessionId, emit } = this.#lease;
    const stopped = { type: 'recording-stopped', sessionId, replay } as const;
    const { signal } = this.#abort;
    try {
      const { replay_id: replayId } = replay;
      if (replayId === undefined) throw new Error('The service returned no id for the recording.');
      await raceAbort(service.requests.stopReplay(sessionId, replayId, { signal }), signal);
      emit(stopped);
    } catch (error) {
      this.#fail({ ...stopped, error: asError(error) });
    }
  }

  #fail(event: ReplaysStep & { readonly error: Error }): void {
    this.#lease.addError(event.error);
    this.#lease.emit(event);
  }

  /** The service's list can be late or fail; the response to the start of the recording has its link. */
  #withStarted(replays: readonly Replay[]): readonly Replay[] {
    const started = this.#recording;
    const id = started && identify(started);
    return id && !replays.some((replay) => identify(replay) === id) ? [...replays, started] : replays;
  }

  /** All steps share `replaysTimeout`. */
  async #inTime<T>(work: () => Promise<T>): Promise<T> {
    const began = clock.now();
    const { replaysTimeout } = this.#settings;
    const late = () =>
      new Error(
        `The recordings were not available within ${duration(replaysTimeout)} (option replaysTimeout).`,
      );
    const timer = startTimer(this.#timeLeft, () => this.#abort.abort(late()));
    try {
      return await raceAbort(work(), this.#abort.signal);
    } finally {
      clock.clearTimeout(timer);
      this.#timeLeft = Math.max(0, this.#timeLeft - (clock.now() - began));
    }
  }
}

/** Repeats a request after a fault that may pass. */
async function persist<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (let retries = 0; ; retries++) {
    try {
      return await ask();
    } catch (error) {
      if (retries === MOST_RETRIES || signal.aborted || !isTransientError(error)) throw error;
      await delay(backoff(RETRY, retries + 1), signal);
    }
  }
}

/**
 * The recording that the service started by itself when it leased the browser, before its answer. It is running, and is the
 * last that began. Times of the service are compared only with each other.
 */
function ownOf(all: readonly Replay[], servedAt: number | undefined): Replay | undefined {
  if (servedAt === undefined) return undefined;
  const running = all.filter(
    (replay) => replay.finished_at === undefined && startOf(replay) >= servedAt - LONGEST_START,
  );
  return running.toSorted((a, b) => startOf(a) - startOf(b)).at(-1);
}

function startOf(replay: Replay | undefined): number {
  return Date.parse(replay?.started_at ?? '');
}

function endedBefore({ finished_at: end = '' }: Replay, time: number): boolean {
  return Date.parse(end) < time;
}

export function statusOf(replays: readonly Replay[]): ReplayStatus {
  if (replays.length === 0) return 'none';
  return replays.every((replay) => replay.finished_at !== undefined) ? 'ready' : 'pending';
}

/** Identifies a replay. No field of it is required, not even the id. */
function identify({ replay_id, replay_view_url, started_at }: Replay): string {
  return replay_id ?? replay_view_url ?? started_at ?? '';
}

function latestOf(replay: Replay, all: readonly Replay[]): Replay {
  const id = identify(replay);
  return (id && all.find((other) => identify(other) === id)) || replay;
}
