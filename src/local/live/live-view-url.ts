import type { ChromiumPool } from '../pool/chromium-pool.js';
import type { Lease } from '../pool/lease.js';
import type { PoolSet } from '../pool/pool-set.js';
import type { Audience } from '../sockets/jwt.js';

/** Browsers with windows have a live view (interface: Browser session); headless ones by a quirk only. */
export function hasLiveView({ quirks }: PoolSet, { settings }: ChromiumPool): boolean {
  return !settings.headless || quirks.liveViewsHeadless;
}

/** The jwts that open a live view: the one also drives the browser, the other never does. */
export const LIVE_AUDIENCES = ['live-view', 'live-watch'] as const;

/** URL of the page on which a person sees and drives the browser, as long as this lease lasts. */
export async function liveViewUrl(pools: PoolSet, lease: Lease): Promise<string> {
  return await urlOf(pools, lease, 'live-view');
}

/** URL of the page on which a person sees the browser: one to pass on, for nothing in it can be changed to do more. */
export async function watchUrl(pools: PoolSet, lease: Lease): Promise<string> {
  return await urlOf(pools, lease, 'live-watch');
}

async function urlOf({ tokens, host }: PoolSet, lease: Lease, audience: Audience): Promise<string> {
  const jwt = await tokens.sign(lease, audience);
  return `http://${host}/browsers/${lease.browser.sessionId}/live?jwt=${jwt}`;
}
