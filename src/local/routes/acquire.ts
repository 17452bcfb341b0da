import { openUrl } from '../browser/open-url.js';
import type { CheckedQuirks } from '../options/check-quirks.js';
import { EMPTY, type Answer } from '../http/answer.js';
import { HttpFault } from '../http/http-fault.js';
import { readJson } from '../http/read-json.js';
import type { RouteCall } from '../http/route-call.js';
import type { ChromiumPool } from '../pool/chromium-pool.js';
import type { Lease } from '../pool/lease.js';
import type { PoolSet } from '../pool/pool-set.js';
import { readRecordingRequest } from '../replays/recording-request.js';
import { readAcquireRequest } from './acquire-request.js';
import { sessionBody } from './session-body.js';

/** POST /browser_pools/{id_or_name}/acquire (interface: endpoint 2). */
export async function acquire({ request, id, pools, signal }: RouteCall): Promise<Answer> {
  const pool = pools.pool(id);
  const { acquire_timeout_seconds, ...lease } = readAcquireRequest(await readJson(request));
  const wait = pools.quirks.answersAtOnce ? 0 : (acquire_timeout_seconds ?? defaultWait(pool)) * 1000;
  const granted = await pool.acquire(lease, wait, signal);
  return granted
    ? await grantAnswer(pools, pool, granted, signal)
    : unavailable(pools.quirks.unavailableStatus);
}

/**
 * Default: the time to fill the pool at its fill rate (interface: acquire). A pool that refills at once has none; a
 * minute is then long enough for a browser to start, or to be given back.
 */
function defaultWait({ settings: { fillRatePerMinute } }: ChromiumPool): number {
  return fillRatePerMinute === undefined ? 60 : (100 / fillRatePerMinute) * 60;
}

async function grantAnswer(
  pools: PoolSet,
  pool: ChromiumPool,
  lease: Lease,
  signal: AbortSignal,
): Promise<Answer> {
  const onUndelivered = () => pool.takeBack(lease);
  try {
    const { start_url } = lease.request;
    if (start_url !== undefined) await openUrl(lease.browser.chromium, start_url, signal);
    if (pool.settings.recordAll && !lease.ended) await record(pools, pool, lease);
    signal.throwIfAborted();
    if (lease.ended)
      throw new HttpFault(500, 'internal_error', 'The browser died while it was being leased.');
    return { status: 200, body: await sessionBody(pools, pool, lease), onUndelivered };
  } catch (error) {
    onUndelivered();
    throw error;
  }
}

/** A browser that can't be recorded can be used all the same. */
async function record({ recorder }: PoolSet, { settings }: ChromiumPool, lease: Lease): Promise<void> {
  const { name, telemetry } = settings;
  await recorder.start(lease, { pool: name, telemetry, request: readRecordingRequest({}) }).catch(() => {});
}

function unavailable(status: CheckedQuirks['unavailableStatus']): Answer {
  if (status === 204) return EMPTY;
  const message = 'No browser became available within the wait.';
  return { status, body: { code: 'no_browser_available', message } };
}
