import type { Replay } from '../../service/wire.js';
import type { Answer } from '../http/answer.js';
import type { RouteCall } from '../http/route-call.js';
import { replayBody } from './replay-body.js';

/** GET /browsers/{id}/replays (interface: endpoint 3): of all leases of the session, also when it is gone. */
export async function replays({ id, pools }: RouteCall): Promise<Answer> {
  const recordings = pools.recorder.list(id);
  // A session that was never recorded is known as long as its browser is there.
  if (recordings.length === 0) pools.poolOfSession(id);
  const body: readonly Replay[] = await Promise.all(recordings.map((one) => replayBody(pools, one)));
  return { status: 200, body };
}
