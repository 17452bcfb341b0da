import { isIP } from 'node:net';
import type { CdpClient } from '../../connect/cdp-client.js';

/**
 * Whether two hosts are of one site. The browser knows the public suffixes, such as `co.uk`; an older one, which does not say it, counts
 * the last two labels of a name.
 *
 * @param sessionId Of a page, or a worker.
 */
export async function areOfOneSite(
  [one, other]: readonly [URL, URL],
  cdp: CdpClient,
  sessionId: string,
): Promise<boolean> {
  if (one.hostname === other.hostname) return true;
  // The names of one site have them in common, whatever its suffix is.
  if (endOf(one) !== endOf(other)) return false;
  const siteOf = ({ hostname }: URL) =>
    cdp.send('Network.fetchSchemefulSite', { origin: `https://${hostname}` }, sessionId);
  const sites = await Promise.all([siteOf(one), siteOf(other)]).catch(() => undefined);
  return sites?.[0].schemefulSite === sites?.[1].schemefulSite;
}

function endOf({ hostname }: URL): string {
  const isAddress = isIP(hostname) !== 0 || hostname.startsWith('[');
  return isAddress ? hostname : hostname.split('.').slice(-2).join('.');
}
