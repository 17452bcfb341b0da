import type { BrowserSession, Replay } from '../service/wire.js';
import { raceAbort } from '../shared/abort.js';
import { isRecord } from '../shared/json.js';
import type { LeaseCall } from './lease-call.js';

/** A recording of a lease. The constructor starts it. Its errors are emitted as events, and do not fail the run. */
export class Recording {
  readonly #call: LeaseCall;
  readonly #session: BrowserSession;
  readonly #signal: AbortSignal;
  readonly #started: Promise<void>;
  #replay: Replay | undefined;

  /** @param signal Aborts the requests; its reason is then the error. */
  constructor(call: LeaseCall, session: BrowserSession, signal: AbortSignal) {
    this.#call = call;
    this.#session = session;
    this.#signal = signal;
    this.#started = this.#start();
  }

  /** The recording as the service described it at its start; `undefined` before. */
  get replay(): Replay | undefined {
    return this.#replay;
  }

  /** Stops the recording, after its start. */
  async stop(): Promise<void> {
    await this.#started;
    const replay = this.#replay;
    if (!replay) return;
    const { session_id: sessionId } = this.#session;
    const stopped = { type: 'recording-stopped', sessionId, replay } as const;
    try {
      await raceAbort(this.#requestStop(replay), this.#signal);
      this.#call.emit(stopped);
    } catch (error) {
      this.#fail(error as Error, { ...stopped, error: error as Error });
    }
  }

  async #start(): Promise<void> {
    const { pool, settings, emit } = this.#call;
    const { session_id: sessionId } = this.#session;
    const { frameRate, maxDuration } = settings.recording ?? {};
    const request = {
      ...(frameRate !== undefined && { framerate: frameRate }),
      ...(maxDuration !== undefined && { max_duration_in_seconds: Math.ceil(maxDuration / 1000) }),
    };
    try {
      const replay: unknown = await raceAbort(
        pool.startReplay(sessionId, request, { signal: this.#signal }),
        this.#signal,
      );
      if (!isRecord(replay)) throw new Error('endpoints.startReplay returned no replay.');
      this.#replay = replay;
      emit({ type: 'recording-started', sessionId, replay });
    } catch (error) {
      this.#fail(error as Error, { type: 'recording-unavailable', sessionId, error: error as Error });
    }
  }

  async #requestStop({ replay_id: replayId }: Replay): Promise<void> {
    if (replayId === undefined) throw new Error('The service returned no replay_id for the recording.');
    const { pool } = this.#call;
    await pool.stopReplay(this.#session.session_id, replayId, { signal: this.#signal });
  }

  #fail(error: Error, event: Parameters<LeaseCall['emit']>[0]): void {
    this.#call.cleanupErrors.push(error);
    this.#call.emit(event);
  }
}
