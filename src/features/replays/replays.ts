import type { FeatureContext, Finished, LeaseFeature } from '../../lease/feature.js';
import type { LeaseRequest, Replay } from '../../services/browser-service.js';
import { onAbort } from '../../shared/abort.js';
import type { ReplaysResult } from './options.js';
import { Recordings, type Listed, type ReplaysPlan, type ReplaysStep } from './recordings.js';

/** Time in ms after which the hooks of this feature are given up although they have a timeout themselves. */
const SLACK = 5000;

/** The recordings of a lease: lists them, and with `replays: 'record'` makes one. */
export class Replays implements LeaseFeature {
  /** Of its hooks of the end. */
  readonly stage = 'replays';
  readonly timeout: number;
  readonly #settings: ReplaysPlan;
  #lease: FeatureContext<ReplaysStep> | undefined;
  /** Since the pool leased a browser. */
  #recordings: Recordings | undefined;
  /** Since the end of the lease. */
  #listed: Listed = { replays: [], replayStatus: 'none' };

  constructor(settings: ReplaysPlan) {
    this.#settings = settings;
    // All steps share `replaysTimeout`, and report what is late.
    this.timeout = settings.replaysTimeout + SLACK;
  }

  request(): Partial<LeaseRequest> {
    return { record: this.#isRecording };
  }

  /** @param earlier Ids of the recordings from before the lease, if another process began it. */
  leased(lease: FeatureContext<ReplaysStep>, earlier: unknown): void {
    this.#lease = lease;
    const recordings = new Recordings(lease, this.#settings);
    this.#recordings = recordings;
    onAbort(lease.givenUp, () => recordings.abort());
    recordings.begin(Array.isArray(earlier) ? earlier.map(String) : undefined);
  }

  async stop(): Promise<void> {
    if (this.#isRecording) await this.#time((recordings) => recordings.stopRecording());
  }

  async finish(): Promise<Finished> {
    await this.#time(async (recordings) => this.#note(await recordings.collect()));
    const released = () =>
      this.#time(async (recordings) => this.#note(await recordings.finish(this.#listed)));
    return { saved: this.#recordings?.earlier, ...(this.#isRecording && { released }) };
  }

  get summary(): ReplaysResult {
    const { replays, replayStatus } = this.#listed;
    return { replays, replayStatus };
  }

  /** The recording of this lease, once it has started. */
  get started(): readonly Replay[] {
    return this.#recordings?.started ?? [];
  }

  /** Lists the recordings of this lease so far, within `replaysTimeout`. Never rejects. */
  async soFar(): Promise<readonly Replay[]> {
    return this.#recordings?.soFar() ?? [];
  }

  get #isRecording(): boolean {
    return this.#settings.replays === 'record';
  }

  /** A stage that was not reached has no time. */
  async #time(work: (recordings: Recordings) => Promise<void>): Promise<void> {
    const recordings = this.#recordings;
    if (recordings) await this.#lease!.time(this.stage, () => work(recordings));
  }

  #note(listed: Listed): void {
    if (listed === this.#listed) return;
    this.#listed = listed;
    const { replays, replayStatus: status, error } = listed;
    const { sessionId, addError, emit } = this.#lease!;
    if (error) addError(error);
    emit({ type: 'replays', sessionId, replays, status, ...(error && { error }) });
  }
}
