import type { Chromium } from '../browser/chromium.js';
import { PROTOCOL_NAMES, type Log, type LocalPoolEvent, type RecordingEnd } from '../events.js';
import { HttpFault } from '../http/answer.js';
import type { CheckedOptions } from '../options.js';
import { saveReplayPage } from '../pages/replay-file.js';
import type { Lease } from '../pool/lease.js';
import { RecordingStore } from './recording-store.js';
import { Recording, type RecordingPlan } from './recording.js';
import { isDiskFull } from './video-file.js';
import { VideoWriter } from './video-writer.js';

/** Recordings of one lease at the same time. */
const MAX_PER_LEASE = 4;

interface RecorderOptions {
  readonly limits: CheckedOptions['recording'];
  /** Starts the Chromium that encodes the videos. */
  readonly launch: (signal: AbortSignal) => Promise<Chromium>;
  readonly log: Log;
}

/** Records the leases of a local pool. The recordings stay available after their sessions end. */
export class Recorder {
  readonly #store: RecordingStore;
  readonly #writer: VideoWriter;
  readonly #log: Log;
  /** The folder in which the recordings outlive the process. */
  readonly #folder: string | undefined;

  constructor({ limits, launch, log }: RecorderOptions) {
    this.#store = new RecordingStore(limits);
    this.#writer = new VideoWriter(launch);
    this.#log = log;
    this.#folder = limits.folder;
  }

  /** Starts a recording, which ends with the lease at the latest. */
  async start(lease: Lease, plan: RecordingPlan): Promise<Recording> {
    const running = this.list(lease.sessionId).filter(({ ended }) => !ended);
    if (running.length >= MAX_PER_LEASE) throw tooMany();
    const onFinished = (recording: Recording, reason: RecordingEnd) => this.#onFinished(recording, reason);
    let recording: Recording | undefined;
    try {
      recording = new Recording(lease, plan, { store: this.#store, writer: this.#writer, onFinished });
      this.#store.add(recording);
      const { sessionId, replayId } = recording;
      this.#log({ type: 'recording-started', pool: plan.pool, sessionId, replayId });
      // Before the response: its link opens at once.
      await saveReplayPage(recording);
      await recording.start(lease.browser.chromium);
      return recording;
    } catch (error) {
      await recording?.stop('browser-gone');
      if (recording) this.#store.remove(recording);
      throw this.#refusal(error as NodeJS.ErrnoException);
    }
  }

  /** The recordings of one session, or of all sessions; the oldest first. */
  list(sessionId?: string): readonly Recording[] {
    return this.#store.list(sessionId);
  }

  find(sessionId: string, replayId: string): Recording | undefined {
    return this.list(sessionId).find((recording) => recording.replayId === replayId);
  }

  /** Adds the connections of a session to the timelines of its recordings. */
  note(event: LocalPoolEvent): void {
    if (event.type !== 'connected' && event.type !== 'disconnected') return;
    for (const recording of this.list(event.sessionId))
      recording.note(event.type, PROTOCOL_NAMES[event.protocol]);
  }

  /** Ends all recordings. Writes the last videos only if the option `recording.folder` keeps them. */
  async close(): Promise<void> {
    const finished = Promise.all(this.list().map((recording) => recording.stop('lease-ended')));
    if (this.#folder !== undefined) await finished;
    await this.#writer.close();
    await finished;
    await this.#store.close();
  }

  #refusal(error: NodeJS.ErrnoException): HttpFault {
    const { code, message, syscall } = error;
    if (syscall === undefined) return new HttpFault(502, 'bad_gateway', 'The browser does not answer.');
    if (isDiskFull(error))
      return new HttpFault(507, 'insufficient_storage', 'The disk is full: there is no space for a video.');
    const [where, advice] =
      this.#folder === undefined ? ['The video', ''] : [`The recording in ${this.#folder}`, ELSEWHERE];
    return new HttpFault(500, 'internal_error', `${where} cannot be written (${code ?? message}).${advice}`);
  }

  #onFinished(recording: Recording, reason: RecordingEnd): void {
    const { pool, sessionId, replayId, length, video, failure } = recording;
    this.#log({
      type: 'recording-finished',
      pool,
      sessionId,
      replayId,
      reason,
      milliseconds: Math.round(length),
      bytes: video?.size ?? 0,
      ...(failure !== undefined && { failure }),
    });
    this.#store.prune();
  }
}

const ELSEWHERE =
  ' Choose another folder: BROWSER_POOL_LOCAL_RECORDINGS or the option local.recordings with baseUrl local, else the ' +
  'option recording.folder of startLocalPool, or serve --recordings.';

function tooMany(): HttpFault {
  const message = `A lease can have at most ${MAX_PER_LEASE} recordings at the same time. Stop one of them first.`;
  return new HttpFault(409, 'too_many_recordings', message);
}
