import { replayRequest } from '../../service/pool-options.js';
import type { Replay } from '../../service/wire.js';
import { checked, optional, wholeNumber, withDefault } from '../../shared/options.js';
import { EMPTY, HttpFault, notFound, type Answer } from '../http/answer.js';
import { readBody, readFields, type RouteCall } from '../http/request.js';
import { replayViewUrl } from '../pages/replay-page.js';
import type { ChromiumPool } from '../pool/chromium-pool.js';
import type { Lease } from '../pool/lease.js';
import type { PoolSet } from '../pool/pool-set.js';
import type { Recording } from '../replays/recording.js';
import { videoAnswer } from '../replays/video-file.js';

/** DELETE /browsers/{id} (extension of the API): destroys the browser, leased or idle. */
export function deleteBrowser({ id, pools }: RouteCall): Answer {
  pools.poolOfSession(id).delete(id);
  return EMPTY;
}

/** GET /browsers/{id}/replays: the recordings of all leases of the session, also after its end. */
export function listReplays({ id, pools }: RouteCall): Answer {
  const recordings = pools.recorder.list(id);
  // A session without recordings exists as long as its browser.
  if (recordings.length === 0) pools.poolOfSession(id);
  return { status: 200, body: recordings.map((one) => replayBody(pools, one)) };
}

function replayBody(pools: PoolSet, recording: Recording): Replay {
  const { replayId, startedAt, finishedAt } = recording;
  return {
    replay_id: replayId,
    started_at: startedAt.toISOString(),
    ...(finishedAt && { finished_at: finishedAt.toISOString() }),
    replay_view_url: replayViewUrl(pools, recording),
  };
}

const recordingRequest = {
  ...replayRequest,
  framerate: withDefault(wholeNumber(1, 60), 10),
  record_audio: optional(checked<false>(faultInAudio)),
};

function faultInAudio(value: unknown): string | undefined {
  return value === false ? undefined : 'must be false: the local pool records no audio';
}

/** POST /browsers/{id}/replays (extension of the API): starts a recording of the lease. */
export async function startReplay({ request, id, pools }: RouteCall): Promise<Answer> {
  const pool = pools.poolOfSession(id);
  const body = await readBody(request, recordingRequest, 'refuse');
  if (pool.settings.headless && !pools.quirks.recordsHeadless) {
    throw new HttpFault(400, 'headless_not_supported', 'A headless browser cannot be recorded.');
  }
  const lease = pools.lease(id);
  if (!lease) throw notFound('This browser session is not leased.');
  return { status: 201, body: replayBody(pools, await startRecording(pools, pool, lease, body)) };
}

/** @param request The checked body of the request. Default: the default of each field. */
export function startRecording(
  { recorder }: PoolSet,
  { settings: { name: pool, telemetry } }: ChromiumPool,
  lease: Lease,
  request = readFields(recordingRequest, {}),
): Promise<Recording> {
  return recorder.start(lease, { pool, telemetry, request });
}

/**
 * POST /browsers/{id}/replays/{replay_id}/stop (extension of the API). Takes the last screenshot before the response,
 * and writes the video after it.
 */
export async function stopReplay(call: RouteCall): Promise<Answer> {
  await findReplay(call).stopWithScreenshot();
  return EMPTY;
}

/** GET /browsers/{id}/replays/{replay_id} (extension of the API): the video, or 202 until the video is complete. */
export function replayVideo(call: RouteCall): Answer {
  const { video, finishedAt, failure } = findReplay(call);
  if (video) return videoAnswer(video, call.request);
  if (!finishedAt) return { status: 202, headers: { 'retry-after': '1' } };
  throw new HttpFault(410, 'no_video', 'This recording has no video.', {
    inner_error: { code: 'no_video', message: failure ?? 'No page was visible.' },
  });
}

function findReplay({ id, replayId, pools }: RouteCall): Recording {
  const found = pools.recorder.find(id, replayId);
  if (!found) throw notFound('This browser session has no replay with this id.');
  return found;
}
