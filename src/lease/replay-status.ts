import type { Replay } from '../service/wire.js';

/**
 * - `ready`: all recordings of this lease are finished;
 * - `pending`: at least one is still being recorded or written;
 * - `none`: nothing was recorded;
 * - `unavailable`: the service could not tell in time, or not whose recordings they are, or did not record;
 * - `off`: not asked for.
 */
export type ReplayStatus = 'ready' | 'pending' | 'none' | 'unavailable' | 'off';

/** What is known of a lease's recordings. */
export interface ReplayResult {
  replays: readonly Replay[];
  replayStatus: ReplayStatus;
  /** Why the status is `unavailable`, or could not be told any more. */
  error?: Error;
}

export function statusOf(replays: readonly Replay[]): ReplayStatus {
  if (replays.length === 0) return 'none';
  return replays.every((replay) => replay.finished_at !== undefined) ? 'ready' : 'pending';
}

/** What tells a replay from others. No field of one is required (interface: Replay), its id included. */
export function identify({ replay_id, replay_view_url, started_at }: Replay): string {
  return replay_id ?? replay_view_url ?? started_at ?? '';
}
