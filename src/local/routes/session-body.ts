import type { BrowserSession, Telemetry, TelemetryCategory } from '../../service/wire.js';
import { TELEMETRY_CATEGORIES } from '../options/check-telemetry.js';
import type { ChromiumPool } from '../pool/chromium-pool.js';
import type { Lease } from '../pool/lease.js';
import type { PoolSet } from '../pool/pool-set.js';
import { hasLiveView, liveViewUrl } from '../live/live-view-url.js';
import type { Audience } from '../sockets/jwt.js';

/** A lease as it travels (interface: Browser session). */
export async function sessionBody(pools: PoolSet, pool: ChromiumPool, lease: Lease): Promise<BrowserSession> {
  const { browser, request } = lease;
  const { id, name, headless, timeoutSeconds, viewport, startUrl, telemetry } = pool.settings;
  const start_url = request.start_url ?? startUrl;
  return {
    session_id: browser.sessionId,
    created_at: browser.createdAt,
    cdp_ws_url: await websocketUrl(pools, lease, 'cdp', 'cdp'),
    webdriver_ws_url: await websocketUrl(pools, lease, 'session', 'bidi'),
    headless,
    stealth: false,
    kiosk_mode: false,
    timeout_seconds: timeoutSeconds,
    pool: { id, name },
    telemetry: telemetry ? telemetryBody(telemetry) : null,
    ...(request.name !== undefined && { name: request.name }),
    ...(request.tags !== undefined && { tags: request.tags }),
    ...(start_url !== undefined && { start_url }),
    ...(viewport && { viewport }),
    ...(hasLiveView(pools, pool) && { browser_live_view_url: await liveViewUrl(pools, lease) }),
  };
}

/** All nine categories (interface: Telemetry shape). */
function telemetryBody(enabled: readonly TelemetryCategory[]): Telemetry {
  const browser = TELEMETRY_CATEGORIES.map((category) => [category, { enabled: enabled.includes(category) }]);
  return { browser: Object.fromEntries(browser) as Telemetry['browser'] & object };
}

async function websocketUrl(pools: PoolSet, lease: Lease, path: string, audience: Audience): Promise<string> {
  const jwt = await pools.tokens.sign(lease, audience);
  return `ws://${pools.host}/browsers/${lease.browser.sessionId}/${path}?jwt=${jwt}`;
}
