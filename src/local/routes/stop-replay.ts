import { EMPTY, type Answer } from '../http/answer.js';
import type { RouteCall } from '../http/route-call.js';
import { findReplay } from './find-replay.js';

/**
 * POST /browsers/{id}/replays/{replay_id}/stop (beyond the given interface). What the page showed until now is taken
 * before the response, and the film is made after it.
 */
export async function stopReplay(call: RouteCall): Promise<Answer> {
  await findReplay(call).stopWithPicture();
  return EMPTY;
}
