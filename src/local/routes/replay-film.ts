import type { Answer } from '../http/answer.js';
import { HttpFault } from '../http/http-fault.js';
import type { RouteCall } from '../http/route-call.js';
import { filmAnswer } from '../replays/film-answer.js';
import { findReplay } from './find-replay.js';

/** Seconds after which a film may be asked for again. */
const RETRY_AFTER = '1';

/** GET /browsers/{id}/replays/{replay_id} (beyond the given interface): the film; 202 until it is written. */
export function replayFilm(call: RouteCall): Answer {
  const { film, finishedAt, failure } = findReplay(call);
  if (film) return filmAnswer(film, call.request);
  if (!finishedAt) return { status: 202, headers: { 'retry-after': RETRY_AFTER } };
  throw new HttpFault(410, 'no_film', 'There is no film of this recording.', {
    inner_error: { code: 'no_film', message: failure ?? 'No page was shown.' },
  });
}
