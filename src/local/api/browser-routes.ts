import type { BrowserSession, Telemetry } from '../../services/kernel-api.js';
import { EMPTY, type Answer } from '../http/answer.js';
import { urlOf, type RouteCall } from '../http/request.js';
import type { ServedPool } from '../pool/served-pool.js';
import type { ServedBrowser, ServedLease } from '../pool/served-lease.js';
import { TELEMETRY_CATEGORIES, type CheckedSettings } from '../settings.js';
import { websocketUrl } from '../sockets/jwt.js';
import type { Api } from './api.js';

/** GET /browsers: the sessions that are leased now. `tags[key]=value` in the query filters them; all must match. */
export async function listBrowsers(api: Api, { request }: RouteCall): Promise<Answer> {
  const tags = tagsOf(urlOf(request).searchParams);
  const matches = ({ request }: ServedLease) => tags.every(([key, value]) => request.tags?.[key] === value);
  const bodies = [...api.pools].flatMap((pool) =>
    [...pool.leases].filter(matches).map((lease) => sessionBody(api, pool, lease)),
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
export async function describeBrowser(api: Api, { id }: RouteCall): Promise<Answer> {
  const pool = api.pools.poolOfSession(id);
  const lease = pool.lease(id);
  return {
    status: 200,
    body: lease ? await sessionBody(api, pool, lease) : idleBody(pool, pool.find(id)!),
  };
}

export async function sessionBody(api: Api, pool: ServedPool, lease: ServedLease): Promise<BrowserSession> {
  const { name, tags, start_url = pool.settings.startUrl } = lease.request;
  const live = api.liveLinks(pool, lease);
  return {
    ...idleBody(pool, lease.browser),
    // The field is required: it is empty for a browser without CDP.
    cdp_ws_url: lease.browser.process.chromium ? await websocketUrl(api, lease, 'cdp') : '',
    webdriver_ws_url: await websocketUrl(api, lease, 'bidi'),
    ...(name !== undefined && { name }),
    ...(tags !== undefined && { tags }),
    ...(start_url !== undefined && { start_url }),
    ...(live && { browser_live_view_url: live.control }),
  };
}

function idleBody({ settings }: ServedPool, browser: ServedBrowser) {
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
export function deleteBrowser({ pools }: Api, { id }: RouteCall): Answer {
  pools.poolOfSession(id).delete(id);
  return EMPTY;
}
