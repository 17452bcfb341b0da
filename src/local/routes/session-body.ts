import type { BrowserSession } from '../../service/wire.js';
import type { ChromiumPool } from '../pool/chromium-pool.js';
import type { Lease } from '../pool/lease.js';
import type { PoolSet } from '../pool/pool-set.js';
import type { Audience } from '../sockets/jwt.js';

/** A lease as it travels (interface: Browser session). */
export async function sessionBody(pools: PoolSet, pool: ChromiumPool, lease: Lease): Promise<BrowserSession> {
  const { browser, request } = lease;
  const { id, name, headless, timeoutSeconds, viewport, startUrl } = pool.settings;
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
    telemetry: null,
    ...(request.name !== undefined && { name: request.name }),
    ...(request.tags !== undefined && { tags: request.tags }),
    ...(start_url !== undefined && { start_url }),
    ...(viewport && { viewport }),
  };
}

async function websocketUrl(pools: PoolSet, lease: Lease, path: string, audience: Audience): Promise<string> {
  const jwt = await pools.tokens.sign(lease, audience);
  return `ws://${pools.host}/browsers/${lease.browser.sessionId}/${path}?jwt=${jwt}`;
}
