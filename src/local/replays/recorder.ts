import { join } from 'node:path';
import type { Chromium } from '../browser/chromium.js';
import type { Log, LocalPoolEvent, RecordingEnd } from '../events.js';
import { HttpFault } from '../http/http-fault.js';
import type { CheckedRecording } from '../options/check-recording.js';
import type { Lease } from '../pool/lease.js';
import { isDiskFull } from './disk-full.js';
import { FilmStudio } from './film-studio.js';
import type { ReplayShelf } from './local-replay.js';
import { Recording, type RecordingHost, type RecordingPlan } from './recording.js';
import { Shelf } from './shelf.js';
import { TemporaryFolder } from './temporary-folder.js';

/** Recordings of one lease at the same time. */
const MOST_AT_ONCE = 4;

/** What a recorder needs. */
export interface RecorderHost {
  readonly limits: CheckedRecording;
  /** Starts the Chromium in which films are made. */
  readonly launch: (signal: AbortSignal) => Promise<Chromium>;
  readonly log: Log;
}

/** Records the leases of a local pool, and keeps the films. */
export class Recorder implements ReplayShelf {
  readonly #limits: CheckedRecording;
  readonly #studio: FilmStudio;
  readonly #log: Log;
  readonly #shelf = new Shelf();
  readonly #folder = new TemporaryFolder();
  readonly #host: RecordingHost;

  constructor({ limits, launch, log }: RecorderHost) {
    this.#limits = limits;
    this.#studio = new FilmStudio(launch);
    this.#log = log;
    this.#host = {
      spoolPath: (replayId) => join(this.#folder.path, `${replayId}.frames`),
      filmPath: (replayId) => join(this.#limits.folder ?? this.#folder.path, `${replayId}.webm`),
      hasRoom: (recording, more) => this.#hasRoom(recording, more),
      develop: (order) => this.#studio.make(order),
      onFinished: (recording, reason) => this.#onFinished(recording, reason),
    };
  }

  /** Starts a recording of a lease, with whose end it ends. */
  async start(lease: Lease, plan: RecordingPlan): Promise<Recording> {
    const running = this.list(lease.browser.sessionId).filter(({ ended }) => !ended);
    if (running.length >= MOST_AT_ONCE) throw tooMany();
    const recording = this.#newRecording(lease, plan);
    const { sessionId, replayId } = recording;
    this.#shelf.add(recording);
    this.#log({ type: 'recording-started', pool: plan.pool, sessionId, replayId });
    try {
      await recording.start(lease.browser.chromium);
    } catch {
      await recording.stop('browser-gone');
      this.#shelf.remove(recording);
      throw new HttpFault(502, 'bad_gateway', 'The browser does not answer.');
    }
    return recording;
  }

  list(sessionId?: string): readonly Recording[] {
    return this.#shelf.list(sessionId);
  }

  find(sessionId: string, replayId: string): Recording | undefined {
    return this.list(sessionId).find((recording) => recording.replayId === replayId);
  }

  /** Tells the recordings of a session what happens to its connections. */
  note(event: LocalPoolEvent): void {
    if (event.type !== 'connected' && event.type !== 'disconnected') return;
    for (const recording of this.list(event.sessionId)) recording.note(event.type, event.protocol);
  }

  /** Ends what is still recorded. Films that are kept are made first; the others are not any more. */
  async close(): Promise<void> {
    const finished = Promise.all(this.list().map((recording) => recording.stop('lease-ended')));
    if (this.#limits.folder !== undefined) await finished;
    await this.#studio.close();
    await finished;
    await this.#folder.remove();
  }

  #newRecording(lease: Lease, plan: RecordingPlan): Recording {
    try {
      return new Recording(lease, plan, this.#host);
    } catch (error) {
      throw cannotWrite(error as NodeJS.ErrnoException);
    }
  }

  #hasRoom({ frameBytes }: Recording, more: number): boolean {
    const { maxBytes, maxTotalBytes } = this.#limits;
    return frameBytes + more <= maxBytes && this.#shelf.makeRoom(more, maxTotalBytes);
  }

  #onFinished(recording: Recording, reason: RecordingEnd): void {
    const { pool, sessionId, replayId, length, film, failure } = recording;
    this.#log({
      type: 'recording-finished',
      pool,
      sessionId,
      replayId,
      reason,
      milliseconds: Math.round(length),
      bytes: film?.size ?? 0,
      ...(failure !== undefined && { failure }),
    });
    this.#shelf.keep(this.#limits.keep);
  }
}

function tooMany(): HttpFault {
  const message = `A browser is recorded ${MOST_AT_ONCE} times at once at most.`;
  return new HttpFault(409, 'too_many_recordings', message);
}

function cannotWrite(error: NodeJS.ErrnoException): HttpFault {
  if (isDiskFull(error))
    return new HttpFault(507, 'insufficient_storage', 'The disk is full: there is no room for a film.');
  return new HttpFault(500, 'internal_error', `No film can be written (${error.code ?? error.message}).`);
}
