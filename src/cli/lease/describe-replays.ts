import type { ReplayResult } from '../../lease/replay-status.js';
import type { Replay } from '../../service/wire.js';

/** A line for each recording of a lease, and one where they could not be listed. */
export function describeReplays({ replays, error }: Pick<ReplayResult, 'replays' | 'error'>): string[] {
  const lines = replays.map((replay) => `replay ${linkOf(replay)}${isWritten(replay)}`);
  return error ? [...lines, `The replays could not be listed: ${error.message}`] : lines;
}

function linkOf({ replay_view_url: link, replay_id: id }: Replay): string {
  return link ?? id ?? 'without a link';
}

function isWritten({ finished_at }: Replay): string {
  return finished_at === undefined ? ' (still being written)' : '';
}
