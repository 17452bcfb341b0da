import type { PoolRecord } from '../../service/wire.js';
import type { Answer } from '../http/answer.js';
import type { RouteCall } from '../http/route-call.js';
import type { ChromiumPool } from '../pool/chromium-pool.js';

/** GET /browser_pools/{id_or_name} (beyond the given interface). */
export function poolRecord({ id, pools }: RouteCall): Answer {
  return { status: 200, body: recordOf(pools.pool(id)) };
}

function recordOf({ settings, stats, createdAt }: ChromiumPool): PoolRecord {
  const { id, name, size, headless, timeoutSeconds, fillRatePerMinute, viewport, startUrl } = settings;
  return {
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
}
