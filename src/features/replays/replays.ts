import type { ConnectExtension, Opening } from '../../drivers/extension.js';
import type { Observation } from '../../drivers/connector.js';
import type {
  EndWork,
  FeatureContext,
  FeatureNeeds,
  Finished,
  LeaseEnding,
  LeaseFeature,
  Work,
} from '../../lease/feature.js';
import type { PageOfPicture } from '../../recorder/recorded-pages.js';
import type { LeaseRequest, Replay } from '../../services/browser-service.js';
import { onAbort, raceTimeout } from '../../shared/abort.js';
import { CleanupError } from '../../shared/lease-errors.js';
import { ClientRecording } from './client-recording.js';
import { isByClient, recordingOf, type ReplaysResult } from './options.js';
import { shownCommands } from './shown-commands.js';
import { Recordings, statusOf, type Listed, type ReplaysPlan, type ReplaysStep } from './recordings.js';

/** Time in ms after which the hooks of this feature are abandoned although they have a timeout themselves. */
const SLACK = 5000;

/** Milliseconds to find a page that may be unresponsive. */
const PAGE_TIMEOUT = 1000;

/** The recordings of a lease: lists them, and with `replays: 'record'` makes one. */
export class Replays implements LeaseFeature {
  /** The stage of its hooks at the end of a lease. */
  readonly stage = 'replays';
  readonly needs: FeatureNeeds;
  readonly #settings: ReplaysPlan;
  #lease: FeatureContext<ReplaysStep> | undefined;
  /** Since the pool leased a browser. */
  #recordings: Recordings | undefined;
  /** What this process records. */
  #client: ClientRecording | undefined;
  /** The lease, or its run. */
  #whole: Work | undefined;
  /** The calls of the library in the whole browser. */
  #calls: Observation | undefined;
  /** No automation library reports what it does. */
  #showsCommands = false;
  #stack: Opening['shared']['stack'] | undefined;
  #hasWarned = false;
  /** The lease, or a part of it. */
  #hasFailed = false;
  /** What counts the failure of the last attempt of a task. */
  readonly #failures = new WeakMap<object, () => void>();
  /** Since the end of the lease. */
  #listed: Listed = { replays: [], replayStatus: 'none' };

  constructor(settings: ReplaysPlan) {
    this.#settings = settings;
    // All steps share `replaysTimeout`, and report what is late.
    this.needs = { time: 2 * settings.replaysTimeout + SLACK };
  }

  request(): Partial<LeaseRequest> {
    return { record: this.#isRecording && !isByClient(recordingOf(this.#settings)) };
  }

  /** @param earlier Ids of the recordings from before the lease, if another process began it. */
  leased(lease: FeatureContext<ReplaysStep>, earlier: unknown): void {
    this.#lease = lease;
    const recordings = new Recordings(lease, this.#settings);
    this.#recordings = recordings;
    onAbort(lease.abandoned, () => recordings.abort());
    const recording = recordingOf(this.#settings);
    const client = this.#isRecording && recording.by !== 'service';
    this.#client = client ? new ClientRecording(lease, recording) : undefined;
    if (isByClient(recording, lease.service)) this.#client?.begin();
    const known = Array.isArray(earlier) ? earlier.map(String) : undefined;
    const recordInstead = () => {
      this.#client?.begin();
      if (this.#client) this.#observe(this.#client);
    };
    recordings.begin(known, recordInstead);
  }

  async connect(_lease: FeatureContext, opening: Opening): Promise<ConnectExtension | undefined> {
    const client = this.#client;
    client?.connect(opening);
    if (!client?.hasBegun) return undefined;
    this.#stack = opening.shared.stack;
    if (this.#showsCommands) this.#showCommands(client);
    return { useBrowser: () => client.attached() };
  }

  async begin(work: Work): Promise<EndWork<Pick<ReplaysResult, 'moment'>> | undefined> {
    if (!this.#isRecording) return undefined;
    const { kind, title = '', attemptOf } = work;
    if (kind !== 'task') {
      // Its tests are parts of it.
      this.#whole = work;
      if (this.#client) this.#observe(this.#client);
      return undefined;
    }
    const client = this.isByClient ? this.#client : undefined;
    client?.note('mark', title);
    const calls = client && !this.#calls ? observeCalls(work, client) : undefined;
    return async (end) => {
      calls?.stop();
      if (!end?.failed) return {};
      // Its page is closed soon.
      if (end.isReachable) await client?.takePicture(await pageOf(work));
      const failure = client?.fail(end.error, title);
      const countFailure = () => {
        this.#hasFailed = true;
        failure?.count();
      };
      if (attemptOf) this.#failures.set(attemptOf, countFailure);
      else countFailure();
      return failure ? { moment: failure.moment } : {};
    };
  }

  async pause(): Promise<((end: string) => Promise<void>) | undefined> {
    const resume = this.#client?.pause();
    return resume && (async (end) => resume(end));
  }

  async stop({ status, error, isOfTasks }: LeaseEnding): Promise<void> {
    if (!this.#isRecording) return;
    this.#calls?.stop();
    const { signal } = this.#lease!;
    // Of tasks, only those that failed in the end count: the job itself ends leases early.
    const failure = status === 'failed' && !isOfTasks ? { error } : undefined;
    if (failure) this.#hasFailed = true;
    await this.#time(async (recordings) => {
      const stopped = recordings.stopRecording();
      await this.#client?.stop(!signal.aborted, this.#settings.replaysTimeout, failure);
      await stopped;
    });
  }

  async finish({ leaves }: LeaseEnding): Promise<Finished> {
    const { keepOnly } = recordingOf(this.#settings);
    await this.#time(async (recordings) => this.#note(await recordings.collect()));
    const released = () =>
      this.#time(async (recordings) => {
        const completed = this.#completeOwn();
        const isUnwanted = !leaves && !this.#hasFailed && keepOnly === 'failures';
        const listed = await (isUnwanted ? recordings.remove(this.#listed) : recordings.finish(this.#listed));
        await completed;
        if (listed !== this.#listed || this.isByClient) this.#note(listed);
      });
    return { saved: this.#recordings?.earlier, ...(this.#isRecording && { released }) };
  }

  /** Gives the recording of this process a title. */
  title(text: string): void {
    this.#client?.note('mark', text);
  }

  /** Something in the lease has failed that neither its callback nor a task reports. */
  fail(error: unknown): void {
    this.#hasFailed = true;
    this.#client?.fail(error)?.count();
  }

  get summary(): ReplaysResult {
    const own = this.#client?.replay;
    const moment = this.#client?.moment;
    const { replays: listed, replayStatus } = this.#listed;
    const isMissing = this.#client?.isUnavailable === true && listed.length === 0;
    if (!own) return { replays: listed, replayStatus: isMissing ? 'unavailable' : replayStatus };
    const replays = [...listed, own];
    return { replays, replayStatus: statusOf(replays), ...(moment !== undefined && { moment }) };
  }

  /** The recording of this lease, once it has started. */
  get started(): readonly Replay[] {
    const own = this.#client?.replay;
    return [...(this.#recordings?.started ?? []), ...(own ? [own] : [])];
  }

  /** A task has failed, and no attempt follows its last one: the recording is one of a failure. */
  countFailure(task: object): void {
    this.#failures.get(task)?.();
  }

  /** The recordings that started, without those that are removed if nothing in this lease fails. @param hasFailed Something has. */
  startedIf(hasFailed: boolean): readonly Replay[] {
    return hasFailed || recordingOf(this.#settings).keepOnly === 'all' ? this.started : [];
  }

  /** Lists the recordings of this lease so far, within `replaysTimeout`. Never rejects. */
  async soFar(): Promise<readonly Replay[]> {
    const own = this.#client?.replay;
    return [...((await this.#recordings?.soFar()) ?? []), ...(own ? [own] : [])];
  }

  /** This process records the lease. */
  get isByClient(): boolean {
    return this.#client?.hasBegun === true;
  }

  get #isRecording(): boolean {
    return this.#settings.replays === 'record';
  }

  /** Shows in the recording of this process what the whole lease does. */
  #observe(client: ClientRecording): void {
    if (!client.hasBegun || !this.#whole || this.#calls) return;
    this.#calls = observeCalls(this.#whole, client);
    this.#showsCommands = this.#calls === undefined;
    if (this.#showsCommands) this.#showCommands(client);
  }

  #showCommands(client: ClientRecording): void {
    this.#stack?.add(shownCommands((text) => void client.note('command', text)));
  }

  /** Whatever this process hides, the recording of the service shows. */
  #warnOnce(service: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const message =
      `The service ${service} has recorded the lease, too, and masks nothing (option recording.hide). ` +
      'Turn its recordings off, or delete this one there.';
    this.#lease!.addError(new CleanupError(message, { sessionId: this.#lease!.sessionId }));
  }

  /** Waits for the video of our own recording, which is written in any case. */
  async #completeOwn(): Promise<void> {
    const { replaysTimeout } = this.#settings;
    const client = this.#client;
    if (client) await raceTimeout(replaysTimeout, () => client.completed()).catch(() => {});
  }

  /** A stage that was not reached has no time. */
  async #time(work: (recordings: Recordings) => Promise<void>): Promise<void> {
    const recordings = this.#recordings;
    if (recordings) await this.#lease!.time(this.stage, () => work(recordings));
  }

  #note(listed: Listed): void {
    this.#listed = listed;
    const { sessionId, service, addError, emit } = this.#lease!;
    const { error } = listed;
    const { replays, replayStatus: status } = this.summary;
    if (error) addError(error);
    const isHidden = recordingOf(this.#settings).hide !== undefined;
    if (isHidden && listed.replays.length > 0) this.#warnOnce(service.facts.name);
    emit({ type: 'replays', sessionId, replays, status, ...(error && { error }) });
  }
}

/** The page of a task. Undefined if there is none, or if it does not answer. */
async function pageOf({ connection, handles, scope }: Work): Promise<PageOfPicture | undefined> {
  const find = async () => connection?.pageId?.(handles ?? {});
  const pageId = await raceTimeout(PAGE_TIMEOUT, find).catch(() => undefined);
  return pageId === undefined ? undefined : { pageId, isContext: scope === 'context' };
}

/** Shows the calls of the library in the timeline. */
function observeCalls({ connection, handles = {}, scope }: Work, client: ClientRecording) {
  return connection?.observe?.({ handles, scope, onCall: ({ text, at }) => client.note('call', text, at) });
}
