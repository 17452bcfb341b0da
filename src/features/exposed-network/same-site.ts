import { isIP } from 'node:net';
import type { CdpClient } from '../../connect/cdp-client.js';
import type { EventParams } from '../../connect/message.js';
import type { Context } from './context.js';
import { valueOf } from './response-kinds.js';

/** Whether the server keeps a response from pages of other origins: the browser checks this only on its own connections. */
export async function isKeptBack(
  { request, frameId, resourceType }: EventParams<'Fetch.requestPaused'>,
  headers: readonly string[],
  { targets, cdp }: Context,
): Promise<boolean> {
  const policy = valueOf('cross-origin-resource-policy', headers) ?? '';
  if (resourceType === 'Document' || !/^same-(origin|site)$/.test(policy)) return false;
  // A request of CORS has rules of its own.
  const isAllowed = valueOf('access-control-allow-origin', headers) !== undefined;
  if (request.headers['Origin'] !== undefined && isAllowed) return false;
  const [origin, target] = await Promise.all([targets.originOf(frameId), targets.containing(frameId)]);
  if (origin === undefined || target === undefined) return false;
  // Of a document without an origin: it is of no site.
  if (!URL.canParse(origin)) return true;
  const [page, server] = [new URL(origin), new URL(request.url)];
  if (page.origin === server.origin) return false;
  const isLessSecure = page.protocol !== 'https:' && server.protocol === 'https:';
  if (policy === 'same-origin' || isLessSecure) return true;
  return !(await areOfOneSite([page, server], cdp, target.sessionId));
}

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
