import { EMPTY, type Answer } from '../http/answer.js';
import { badRequest, notFound } from '../http/http-fault.js';
import { readJson } from '../http/read-json.js';
import type { RouteCall } from '../http/route-call.js';

/** POST /browser_pools/{id_or_name}/release (beyond the given interface). */
export async function release({ request, id, pools }: RouteCall): Promise<Answer> {
  const pool = pools.pool(id);
  const { session_id, reuse = true } = await readJson(request);
  const isSession = typeof session_id === 'string' && session_id !== '';
  const isReuse = typeof reuse === 'boolean';
  if (!isSession || !isReuse) {
    const wrong = [
      isSession ? [] : 'session_id: must be a string',
      isReuse ? [] : 'reuse: must be a boolean',
    ];
    throw badRequest('The request is not valid.', wrong.flat());
  }
  if (!pool.release(session_id, reuse))
    throw notFound('This pool has no leased browser with this session id.');
  return EMPTY;
}
