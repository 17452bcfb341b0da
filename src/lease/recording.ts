import { isRecord } from '../shared/json.js';
import { raceAbort } from '../shared/abort.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { BrowserSession, Replay } from '../service/wire.js';
import type { RecordingEvent } from './recording-events.js';
import type { RecordingOptions, RecordingStart, RecordingStop } from './recording-options.js';

export interface RecordingParts {
  pool: BrowserPool;
  session: BrowserSession;
  options: RecordingOptions;
  /** Gives up on what is still under way; its reason is then the error. */
  signal: AbortSignal;
  onEvent: (event: RecordingEvent) => void;
}

/** A recording of a lease, begun as this is made. What goes wrong with it is told, and fails nothing. */
export class Recording {
  readonly #parts: RecordingParts;
  readonly #started: Promise<void>;
  #replay: Replay | undefined;

  constructor(parts: RecordingParts) {
    this.#parts = parts;
    this.#started = this.#start();
  }

  /** What its start told, or `undefined` while it has not started. */
  get replay(): Replay | undefined {
    return this.#replay;
  }

  /** Ends it; one that is still starting is waited for. */
  async stop(): Promise<void> {
    await this.#started;
    const replay = this.#replay;
    if (!replay) return;
    const { pool, session, options, signal, onEvent } = this.#parts;
    const about = { type: 'recording-stopped', sessionId: session.session_id, replay } as const;
    const stop = options.stop ?? stopAtService;
    try {
      await raceAbort(call(stop, { pool, session, replay, signal }), signal);
      onEvent(about);
    } catch (error) {
      onEvent({ ...about, error: error as Error });
    }
  }

  async #start(): Promise<void> {
    const { pool, session, options, signal, onEvent } = this.#parts;
    const { frameRate, maxDuration, start = startAtService } = options;
    const sessionId = session.session_id;
    try {
      const context = { pool, session, frameRate, maxDuration, signal };
      const replay = await raceAbort(call(start, context), signal);
      if (!isRecord(replay)) throw new Error('recording.start gave no replay.');
      this.#replay = replay;
      onEvent({ type: 'recording-started', sessionId, replay });
    } catch (error) {
      onEvent({ type: 'recording-unavailable', sessionId, error: error as Error });
    }
  }
}

/** A function of the caller's may throw where ours reject. */
async function call<Context, Value>(
  fn: (context: Context) => Value | Promise<Value>,
  context: Context,
): Promise<Value> {
  return fn(context);
}

function startAtService({ pool, session, frameRate, maxDuration, signal }: RecordingStart): Promise<Replay> {
  const request = {
    ...(frameRate !== undefined && { framerate: frameRate }),
    ...(maxDuration !== undefined && { max_duration_in_seconds: Math.ceil(maxDuration / 1000) }),
  };
  return pool.startReplay(session.session_id, request, { signal });
}

function stopAtService({ pool, session, replay, signal }: RecordingStop): Promise<void> {
  if (replay.replay_id === undefined) throw new Error('The service gave the recording no replay_id.');
  return pool.stopReplay(session.session_id, replay.replay_id, { signal });
}
