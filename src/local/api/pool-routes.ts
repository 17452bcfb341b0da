import { acquireRequestChecks } from '../../pool/pool-options.js';
import type { PoolRecord } from '../../services/kernel-api.js';
import { flag, optional, text } from '../../shared/options.js';
import { openUrl } from '../browser/open-url.js';
import { EMPTY, HttpFault, notFound, type Answer } from '../http/answer.js';
import { readBody, type RouteCall } from '../http/request.js';
import type { ServedPool } from '../pool/served-pool.js';
import type { ServedLease } from '../pool/served-lease.js';
import type { CheckedSettings } from '../settings.js';
import type { Api } from './api.js';
import { sessionBody } from './browser-routes.js';
import { DEFAULT_PLAN } from './replay-routes.js';

/** An extension of the API, for `allowedHosts`: WebRTC of the browser must send no UDP packets. */
const acquireBodyChecks = { ...acquireRequestChecks, no_udp: optional(flag(), false) };

/** POST /browser_pools/{id_or_name}/acquire */
export async function acquire(api: Api, { request, id, signal }: RouteCall): Promise<Answer> {
  const { pools, quirks } = api;
  const pool = pools.pool(id);
  const { acquire_timeout_seconds, ...lease } = await readBody(request, acquireBodyChecks);
  const seconds = acquire_timeout_seconds ?? defaultWait(pool.settings);
  const granted = await pool.acquire(lease, quirks.answersAtOnce ? 0 : seconds * 1000, signal);
  if (granted) return await grantAnswer(api, pool, granted, signal);
  const status = quirks.unavailableStatus;
  if (status === 204) return EMPTY;
  const message = 'No browser became available while the request waited.';
  return { status, body: { code: 'no_browser_available', message } };
}

/**
 * The wait of a request that names none: the seconds in which the pool fills at its fill rate. Without a fill rate, a minute is enough for a
 * browser to start or to be released.
 */
function defaultWait({ fillRatePerMinute }: CheckedSettings): number {
  return fillRatePerMinute === undefined ? 60 : (100 / fillRatePerMinute) * 60;
}

async function grantAnswer(
  api: Api,
  pool: ServedPool,
  lease: ServedLease,
  signal: AbortSignal,
): Promise<Answer> {
  const onUndelivered = () => pool.undo(lease);
  try {
    const { start_url } = lease.request;
    if (start_url !== undefined) await openUrl(lease.browser.process, start_url, signal);
    // A failed recording does not fail the lease.
    if (pool.settings.recordAll && !lease.ended)
      await api.recordings.start(pool, lease, DEFAULT_PLAN).catch(() => {});
    signal.throwIfAborted();
    if (lease.ended) throw new HttpFault(500, 'internal_error', 'The browser crashed before the response.');
    return { status: 200, body: await sessionBody(api, pool, lease), onUndelivered };
  } catch (error) {
    onUndelivered();
    throw error;
  }
}

const releaseChecks = { session_id: text(), reuse: optional(flag(), true) };

/** POST /browser_pools/{id_or_name}/release */
export async function release({ pools }: Api, { request, id }: RouteCall): Promise<Answer> {
  const pool = pools.pool(id);
  const { session_id, reuse } = await readBody(request, releaseChecks);
  if (pool.release(session_id, reuse)) return EMPTY;
  throw notFound('This pool has no leased browser with this session id.');
}

/** POST /browser_pools/{id_or_name}/flush */
export function flush({ pools }: Api, { id }: RouteCall): Answer {
  pools.pool(id).flush();
  return EMPTY;
}

/** GET /browser_pools/{id_or_name} */
export function poolRecord({ pools }: Api, { id: idOrName }: RouteCall): Answer {
  const { settings, stats, createdAt } = pools.pool(idOrName);
  const { id, name, size, headless, timeoutSeconds, fillRatePerMinute, viewport, startUrl } = settings;
  const body: PoolRecord = {
    id,
    name,
    available_count: stats.idle,
    acquired_count: stats.leased,
    created_at: createdAt,
    browser_pool_config: {
      size,
      timeout_seconds: timeoutSeconds,
      headless,
      stealth: false,
      ...(fillRatePerMinute !== undefined && { fill_rate_per_minute: fillRatePerMinute }),
      ...(viewport && { viewport }),
      ...(startUrl !== undefined && { start_url: startUrl }),
    },
  };
  return { status: 200, body };
}
