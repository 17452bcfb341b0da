import { notFound } from '../http/http-fault.js';
import type { RouteCall } from '../http/route-call.js';
import type { Recording } from '../replays/recording.js';

/** The recording in the path, else a 404. */
export function findReplay({ id, replayId, pools }: RouteCall): Recording {
  const found = pools.recorder.find(id, replayId);
  if (!found) throw notFound('This browser session has no replay with this id.');
  return found;
}
