import { EMPTY, type Answer } from '../http/answer.js';
import type { RouteCall } from '../http/route-call.js';

/** DELETE /browsers/{id} (beyond the given interface): destroys the browser, leased or idle. */
export function deleteBrowser({ id, pools }: RouteCall): Answer {
  pools.poolOfSession(id).delete(id);
  return EMPTY;
}
