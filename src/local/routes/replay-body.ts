import type { Replay } from '../../service/wire.js';
import type { PoolSet } from '../pool/pool-set.js';
import type { LocalReplay } from '../replays/local-replay.js';
import { replayViewUrl } from '../replays/replay-view-url.js';

/** A recording as it travels (interface: Replay). */
export async function replayBody({ host, tokens }: PoolSet, replay: LocalReplay): Promise<Replay> {
  const { replayId, sessionId, startedAt, finishedAt } = replay;
  return {
    replay_id: replayId,
    started_at: startedAt.toISOString(),
    ...(finishedAt && { finished_at: finishedAt.toISOString() }),
    replay_view_url: await replayViewUrl(host, sessionId, replayId, tokens.signReplay),
  };
}
