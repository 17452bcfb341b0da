import { EMPTY, type Answer } from '../http/answer.js';
import type { RouteCall } from '../http/route-call.js';
import { findReplay } from './find-replay.js';

/** POST /browsers/{id}/replays/{replay_id}/stop (beyond the given interface). The film is made after the response. */
export function stopReplay(call: RouteCall): Answer {
  void findReplay(call).stop('stopped');
  return EMPTY;
}
