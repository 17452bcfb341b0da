import type { Replay } from '../../services/browser-service.js';
import type { BrowserSession, Telemetry } from '../../services/kernel-api.js';
import { checked, optional, wholeNumber } from '../../shared/options.js';
import { EMPTY, HttpFault, notFound, type Answer } from '../http/answer.js';
import { readBody, readFields, urlOf, type RouteCall } from '../http/request.js';
import { TELEMETRY_CATEGORIES, type CheckedSettings } from '../options.js';
import { hasLiveView, liveViewUrl } from '../pages/live-page.js';
import { replayViewUrl } from '../pages/replay-page.js';
import type { ChromiumPool } from '../pool/chromium-pool.js';
import type { Lease, PooledChromium } from '../pool/lease.js';
import type { PoolSet } from '../pool/pool-set.js';
import type { Recording, RecordingRequest } from '../replays/recording.js';
import { videoAnswer } from '../replays/video-file.js';
import { websocketUrl } from '../sockets/upgrade.js';

/** GET /browsers: the sessions that are leased now. `tags[key]=value` in the query filters them; all must match. */
export async function listBrowsers({ request, pools }: RouteCall): Promise<Answer> {
  const tags = tagsOf(urlOf(request).searchParams);
  const matches = ({ request }: Lease) => tags.every(([key, value]) => request.tags?.[key] === value);
  const bodies = [...pools].flatMap((pool) =>
    [...pool.leases].filter(matches).map((lease) => sessionBody(pools, pool, lease)),
  );
  return { status: 200, body: await Promise.all(bodies) };
}

function tagsOf(query: URLSearchParams): [key: string, value: string][] {
  return [...query].flatMap(([name, value]) => {
    const key = /^tags\[(.*)\]$/s.exec(name)?.[1];
    return key === undefined ? [] : [[key, value]];
  });
}

/** GET /browsers/{id}: the session. Without the fields of a lease while the browser is idle. */
export async function describeBrowser({ id, pools }: RouteCall): Promise<Answer> {
  const pool = pools.poolOfSession(id);
  const lease = pool.lease(id);
  return {
    status: 200,
    body: lease ? await sessionBody(pools, pool, lease) : idleBody(pool, pool.find(id)!),
  };
}

/** The session of a lease. */
export async function sessionBody(pools: PoolSet, pool: ChromiumPool, lease: Lease): Promise<BrowserSession> {
  const { name, tags, start_url = pool.settings.startUrl } = lease.request;
  return {
    ...idleBody(pool, lease.browser),
    cdp_ws_url: await websocketUrl(pools, lease, 'cdp'),
    webdriver_ws_url: await websocketUrl(pools, lease, 'bidi'),
    ...(name !== undefined && { name }),
    ...(tags !== undefined && { tags }),
    ...(start_url !== undefined && { start_url }),
    ...(hasLiveView(pools, pool) && { browser_live_view_url: liveViewUrl(pools, lease) }),
  };
}

function idleBody({ settings }: ChromiumPool, browser: PooledChromium) {
  const { id, name, headless, timeoutSeconds, viewport, telemetry } = settings;
  return {
    session_id: browser.sessionId,
    created_at: browser.createdAt,
    headless,
    stealth: false,
    kiosk_mode: false,
    timeout_seconds: timeoutSeconds,
    pool: { id, name },
    telemetry: telemetry ? telemetryBody(telemetry) : null,
    ...(viewport && { viewport }),
  };
}

function telemetryBody(enabled: NonNullable<CheckedSettings['telemetry']>): Telemetry {
  const browser = TELEMETRY_CATEGORIES.map((category) => [category, { enabled: enabled.includes(category) }]);
  return { browser: Object.fromEntries(browser) as Telemetry['browser'] & object };
}

/** DELETE /browsers/{id}: destroys the browser, leased or idle. */
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

const recordingChecks = {
  framerate: optional(wholeNumber(1, 60), 10),
  max_duration_in_seconds: optional(wholeNumber(1)),
  record_audio: optional(checked<false>(faultInAudio)),
};

function faultInAudio(value: unknown): string | undefined {
  return value === false ? undefined : 'must be false: the local pool records no audio';
}

/** POST /browsers/{id}/replays: starts a recording of the lease. */
export async function startReplay({ request, id, pools }: RouteCall): Promise<Answer> {
  const pool = pools.poolOfSession(id);
  const body = await readBody(request, recordingChecks, 'refuse');
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
  request: RecordingRequest = readFields(recordingChecks, {}),
): Promise<Recording> {
  return recorder.start(lease, { pool, telemetry, request });
}

/** POST /browsers/{id}/replays/{replay_id}/stop. Takes the last screenshot before the response, and writes the video after it. */
export async function stopReplay(call: RouteCall): Promise<Answer> {
  await findReplay(call).stopWithScreenshot();
  return EMPTY;
}

/** GET /browsers/{id}/replays/{replay_id}: the video, or 202 until the video is complete. */
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
