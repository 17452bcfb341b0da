import type { Replay } from '../../service/wire.js';
import type { Answer } from '../http/answer.js';
import type { RouteCall } from '../http/route-call.js';

/** GET /browsers/{id}/replays (interface: endpoint 3). The local pool does not record yet: the list is empty. */
export function replays({ id, pools }: RouteCall): Answer {
  pools.poolOfSession(id);
  const none: readonly Replay[] = [];
  return { status: 200, body: none };
}
