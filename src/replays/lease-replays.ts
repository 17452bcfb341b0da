import { raceTimeout } from '../internal/race.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { Replay } from '../service/wire.js';

/**
 * - `ready`: all recordings of this lease are finished;
 * - `pending`: at least one is still being recorded or written;
 * - `none`: nothing was recorded;
 * - `unavailable`: the service could not tell in time, or not whose recordings they are;
 * - `off`: not asked for.
 */
export type ReplayStatus = 'ready' | 'pending' | 'none' | 'unavailable' | 'off';

export interface ReplayResult {
  replays: readonly Replay[];
  replayStatus: ReplayStatus;
  /** Why the status is `unavailable`. */
  error?: Error;
}

/**
 * The recordings that were made during one lease. A browser keeps its session id from lease to lease, and its list
 * holds all of them; so the list at the start is taken off the list at the end, and both are made while we hold it.
 */
export class LeaseReplays {
  readonly #pool: BrowserPool;
  readonly #sessionId: string;
  readonly #earlier: Promise<Set<string>>;
  readonly #stop = new AbortController();

  /** Begins with listing what was there before. */
  constructor(pool: BrowserPool, sessionId: string) {
    this.#pool = pool;
    this.#sessionId = sessionId;
    this.#earlier = pool
      .replays(sessionId, { signal: this.#stop.signal })
      .then((replays) => new Set(replays.map(identify)));
    // Its failure shows in collect().
    this.#earlier.catch(() => {});
  }

  /** The recordings of this lease; to be called before the release. Never rejects. */
  async collect(timeout: number): Promise<ReplayResult> {
    const late = () => new Error(`The replays were not listed within ${timeout} ms`);
    try {
      return await raceTimeout(timeout, () => this.#list(), late);
    } catch (error) {
      return { replays: [], replayStatus: 'unavailable', error: error as Error };
    } finally {
      this.stop();
    }
  }

  /** Ends what is still asked for: nobody waits for it, and it would hold a socket, and the end of the pool. */
  stop(): void {
    this.#stop.abort();
  }

  async #list(): Promise<ReplayResult> {
    const [earlier, all] = await Promise.all([
      this.#earlier,
      this.#pool.replays(this.#sessionId, { signal: this.#stop.signal }),
    ]);
    const replays = all.filter((replay) => !earlier.has(identify(replay)));
    return { replays, replayStatus: statusOf(replays) };
  }
}

function statusOf(replays: Replay[]): ReplayStatus {
  if (replays.length === 0) return 'none';
  return replays.every((replay) => replay.finished_at !== undefined) ? 'ready' : 'pending';
}

/** No field of a replay is required (interface: Replay), its id included. */
function identify({ replay_id, replay_view_url, started_at }: Replay): string {
  return replay_id ?? replay_view_url ?? started_at ?? '';
}
