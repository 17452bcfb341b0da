import { encodeHere, Recorder } from '../../recorder/recorder.js';
import type { Recording, RecordingPlan } from '../../recorder/recording.js';
import { LEASE_TAG, MARK_TAG } from '../../services/browser-service.js';
import type { RecordingLimits } from '../../recorder/recording-store.js';
import { isDiskFull } from '../../recorder/video-file.js';
import type { EncodingBrowser } from '../../recorder/video-writer.js';
import { PROTOCOL_NAMES, type Log, type LocalPoolEvent } from '../events.js';
import { HttpFault } from '../http/answer.js';
import type { ServedPool } from '../pool/served-pool.js';
import type { ServedLease } from '../pool/served-lease.js';

/** Recordings of one lease at the same time. */
const MAX_PER_LEASE = 4;

interface LeaseRecordingsOptions {
  readonly limits: RecordingLimits;
  /** Starts the Chromium that encodes the videos. */
  readonly launch: (signal: AbortSignal) => Promise<EncodingBrowser>;
  readonly log: Log;
}

/** Records the leases of a local pool. */
export class LeaseRecordings {
  readonly #recorder: Recorder;
  /** The folder in which the recordings outlive the process. */
  readonly #folder: string | undefined;

  constructor({ limits, launch, log }: LeaseRecordingsOptions) {
    this.#folder = limits.folder;
    this.#recorder = new Recorder({
      limits,
      encoder: encodeHere(launch),
      onStarted: (recording) => log({ type: 'recording-started', ...idsOf(recording) }),
      onFinished: (recording, reason) => {
        const { length, video, failure } = recording;
        const sizes = { milliseconds: Math.round(length), bytes: video?.size ?? 0 };
        const why = failure === undefined ? {} : { failure };
        log({ type: 'recording-finished', ...idsOf(recording), reason, ...sizes, ...why });
      },
    });
  }

  /** Starts a recording, which ends with the lease at the latest. @throws HttpFault */
  async start({ settings }: ServedPool, lease: ServedLease, plan: RecordingPlan): Promise<Recording> {
    const { id: leaseId, sessionId, signal } = lease;
    const { chromium } = lease.browser.process;
    if (!chromium) throw new HttpFault(501, 'not_implemented', 'Only Chromium can be recorded.');
    const running = this.list(sessionId).filter(({ ended }) => !ended);
    if (running.length >= MAX_PER_LEASE)
      throw new HttpFault(
        409,
        'too_many_recordings',
        `A lease can have at most ${MAX_PER_LEASE} recordings at the same time. Stop one of them first.`,
      );
    const { name: leaseName, tags: all } = lease.request;
    const tags = shownTags(all);
    const session = { sessionId, leaseId, leaseName, tags, pool: settings.name, service: 'local' };
    const categories = settings.telemetry;
    try {
      return await this.#recorder.record(chromium, session, { ...plan, categories }, { signal });
    } catch (error) {
      throw this.#refusal(error as NodeJS.ErrnoException);
    }
  }

  /** The recordings of one session, or of all sessions; the oldest first. */
  list(sessionId?: string): readonly Recording[] {
    const { list } = this.#recorder;
    return sessionId === undefined ? list : list.filter(({ session }) => session.sessionId === sessionId);
  }

  /** Adds the connections of a session to the timelines of its recordings. */
  note(event: { readonly type: string }): void {
    if (!isConnection(event)) return;
    for (const recording of this.list(event.sessionId))
      recording.note(event.type, PROTOCOL_NAMES[event.protocol]);
  }

  /** Ends all recordings. Writes the last videos only if the option `recording.folder` keeps them. */
  async close(): Promise<void> {
    await this.#recorder.close();
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
}

type Connection = Extract<LocalPoolEvent, { type: 'connected' | 'disconnected' }>;

function isConnection(event: { readonly type: string }): event is Connection {
  return event.type === 'connected' || event.type === 'disconnected';
}

function idsOf({ replayId, session: { pool, sessionId } }: Recording) {
  return { pool, sessionId, replayId };
}

const ELSEWHERE =
  ' Choose another folder: BROWSER_POOL_LOCAL_RECORDINGS or the option local.recordings with baseUrl local, else the ' +
  'option recording.folder of startLocalPool, or serve --recordings.';

/** The tags that people chose: the library's own tags are ids, by which it finds its leases. */
export function shownTags(tags: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(tags).filter(([key]) => key !== LEASE_TAG && key !== MARK_TAG));
}
