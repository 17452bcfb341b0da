import { EMPTY, type Answer } from '../http/answer.js';
import type { RouteCall } from '../http/route-call.js';

/** POST /browser_pools/{id_or_name}/flush (interface: endpoint 1). */
export function flush({ id, pools }: RouteCall): Answer {
  pools.pool(id).flush();
  return EMPTY;
}
