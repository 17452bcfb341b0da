import type { Replay } from '../../services/browser-service.js';
import type { Recording, RecordingPlan } from '../../recorder/recording.js';
import { checked, optional, wholeNumber, type Checked } from '../../shared/options.js';
import { EMPTY, HttpFault, notFound, type Answer } from '../http/answer.js';
import { readBody, readFields, type RouteCall } from '../http/request.js';
import { replayViewUrl } from '../replays/replay-pages.js';
import { videoAnswer } from '../replays/video-answer.js';
import type { Api } from './api.js';

/** GET /browsers/{id}/replays: the recordings of all leases of the session, also after its end. */
export function listReplays({ host, pools, recordings }: Api, { id }: RouteCall): Answer {
  const list = recordings.list(id);
  // A session without recordings exists as long as its browser.
  if (list.length === 0) pools.poolOfSession(id);
  return { status: 200, body: list.map((one) => replayBody(host, one)) };
}

function replayBody(host: string, recording: Recording): Replay {
  const { replayId, startedAt, finishedAt } = recording;
  return {
    replay_id: replayId,
    started_at: startedAt.toISOString(),
    ...(finishedAt && { finished_at: finishedAt.toISOString() }),
    replay_view_url: replayViewUrl(host, recording),
  };
}

const recordingChecks = {
  framerate: optional(wholeNumber(1, 60), 10),
  max_duration_in_seconds: optional(wholeNumber(1)),
  record_audio: optional(
    checked<false>((value) =>
      value === false ? undefined : 'must be false: the local pool records no audio',
    ),
  ),
};

/** The plan of a recording for which the request has no body. */
export const DEFAULT_PLAN = planOf(readFields(recordingChecks, {}));

function planOf({
  framerate,
  max_duration_in_seconds: seconds,
}: Checked<typeof recordingChecks>): RecordingPlan {
  return { framerate, ...(seconds !== undefined && { maxDuration: seconds * 1000 }) };
}

/** POST /browsers/{id}/replays: starts a recording of the lease. */
export async function startReplay(
  { host, pools, quirks, recordings }: Api,
  { request, id }: RouteCall,
): Promise<Answer> {
  const pool = pools.poolOfSession(id);
  const plan = planOf(await readBody(request, recordingChecks, 'refuse'));
  if (pool.settings.headless && !quirks.recordsHeadless) {
    throw new HttpFault(400, 'headless_not_supported', 'A headless browser cannot be recorded.');
  }
  const lease = pools.lease(id);
  if (!lease) throw notFound('This browser session is not leased.');
  return { status: 201, body: replayBody(host, await recordings.start(pool, lease, plan)) };
}

/** POST /browsers/{id}/replays/{replay_id}/stop. Takes the last picture before the response, and writes the video after it. */
export async function stopReplay(api: Api, call: RouteCall): Promise<Answer> {
  await findReplay(api, call).stopWithPicture();
  return EMPTY;
}

/** GET /browsers/{id}/replays/{replay_id}: the video, or 202 until the video is complete. */
export function replayVideo(api: Api, call: RouteCall): Answer {
  const { video, finishedAt, failure } = findReplay(api, call);
  if (video) return videoAnswer(video, call.request);
  if (!finishedAt) return { status: 202, headers: { 'retry-after': '1' } };
  throw new HttpFault(410, 'no_video', 'This recording has no video.', {
    inner_error: { code: 'no_video', message: failure ?? 'No page was visible.' },
  });
}

function findReplay({ recordings }: Api, { id, replayId }: RouteCall): Recording {
  const found = recordings.list(id).find((recording) => recording.replayId === replayId);
  if (!found) throw notFound('This browser session has no replay with this id.');
  return found;
}
