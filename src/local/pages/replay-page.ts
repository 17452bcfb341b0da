import type { Answer } from '../http/answer.js';
import { notFound } from '../http/http-fault.js';
import { filmAnswer } from '../replays/film-answer.js';
import type { LocalReplay } from '../replays/local-replay.js';
import type { ReplayFacts } from './messages.js';
import { badLink, jwtOf, type PageCall } from './page-call.js';
import { pageAnswer } from './page-answer.js';
import { replayState } from './replay-state.js';
import { REPLAY_BODY } from './bodies/replay.js';

/** GET /browsers/{id}/replays/view: the page that `replay_view_url` names (interface: Replay). */
export async function replayPage(call: PageCall): Promise<Answer> {
  await findReplay(call);
  return pageAnswer({ title: 'Replay', name: 'replay', body: REPLAY_BODY });
}

/** GET /browsers/{id}/replays/facts: what the page shows beside the film. */
export async function replayFacts(call: PageCall): Promise<Answer> {
  return { status: 200, body: factsOf(await findReplay(call)) };
}

/** GET /browsers/{id}/replays/film */
export async function replayFilm(call: PageCall): Promise<Answer> {
  const { film } = await findReplay(call);
  if (!film) throw notFound('There is no film of this recording, or not yet.');
  return filmAnswer(film, call.request);
}

async function findReplay({ id, query, pools }: PageCall): Promise<LocalReplay> {
  const holder = await pools.tokens.verifyReplay(jwtOf(query));
  const replayId = query.get('replay_id') ?? '';
  if (holder?.sessionId !== id || holder.replayId !== replayId) throw badLink();
  const replay = pools.recorder.find(id, replayId);
  if (!replay) throw notFound('This recording is gone.');
  return replay;
}

function factsOf(replay: LocalReplay): ReplayFacts {
  const { replayId, sessionId, pool, leaseName, startedAt, finishedAt, film, failure, timeline } = replay;
  return {
    state: replayState(replay),
    replayId,
    sessionId,
    pool,
    startedAt: startedAt.toISOString(),
    timeline,
    ...(leaseName !== undefined && { leaseName }),
    ...(finishedAt && { finishedAt: finishedAt.toISOString() }),
    ...(failure !== undefined && { failure }),
    // Its path is none of the page's business.
    ...(film && {
      film: {
        type: film.type,
        size: film.size,
        duration: film.duration,
        width: film.width,
        height: film.height,
      },
    }),
  };
}
