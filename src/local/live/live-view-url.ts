import type { ChromiumPool } from '../pool/chromium-pool.js';
import type { Lease } from '../pool/lease.js';
import type { PoolSet } from '../pool/pool-set.js';

/** Browsers with windows have a live view (interface: Browser session); headless ones by a quirk only. */
export function hasLiveView({ quirks }: PoolSet, { settings }: ChromiumPool): boolean {
  return !settings.headless || quirks.liveViewsHeadless;
}

/** URL of the page on which a person sees and drives the browser, as long as this lease lasts. */
export async function liveViewUrl({ tokens, host }: PoolSet, lease: Lease): Promise<string> {
  const jwt = await tokens.sign(lease, 'live-view');
  return `http://${host}/browsers/${lease.browser.sessionId}/live?jwt=${jwt}`;
}
