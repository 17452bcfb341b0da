import { isIP } from 'node:net';
import type { CdpClient } from '../../wire/cdp-client.js';
import type { EventParams, ResultOf, Session } from '../../wire/layer.js';
import { isTrustworthy, valueOf } from './exposed-request.js';
import type { Context } from './context.js';
import type { ExposedUrl } from './exposed-hosts.js';
import { pageOf, type Place } from './targets.js';

type Cookie = ResultOf<'Storage.getCookies'>['cookies'][number];

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
  const [origin, session] = await Promise.all([targets.originOf(frameId), targets.containing(frameId)]);
  if (origin === undefined || session === undefined) return false;
  // A document without an origin is of no site.
  if (!URL.canParse(origin)) return true;
  const [page, server] = [new URL(origin), new URL(request.url)];
  if (page.origin === server.origin) return false;
  const isLessSecure = page.protocol !== 'https:' && server.protocol === 'https:';
  if (policy === 'same-origin' || isLessSecure) return true;
  return !(await areOfOneSite([page, server], cdp, session.id));
}

/**
 * The cookies that a browser sends with a WebSocket: those of other sites only with `SameSite=None`.
 *
 * @param place Of the script. Undefined if it is of no site.
 */
export async function cookiesFor(
  url: ExposedUrl,
  session: Session,
  place: Place | undefined,
  context: Context,
): Promise<string> {
  const server = new URL(url.replace(/^ws/, 'http'));
  const cookies = await cookiesOf(session.target.browserContextId, context.cdp).catch(() => []);
  const isSameSite = place !== undefined && (await isOfSite(server, session, place, context));
  const sent = cookies.filter(
    (cookie) =>
      isFor(cookie, server) &&
      cookie.partitionKey === undefined &&
      (cookie.sameSite === 'None' || isSameSite),
  );
  // Browsers order cookies in this way.
  sent.sort((one, other) => other.path.length - one.path.length);
  return sent.map(({ name, value }) => (name === '' ? value : `${name}=${value}`)).join('; ');
}

async function cookiesOf(contextId: string | undefined, cdp: CdpClient): Promise<readonly Cookie[]> {
  const { browserContextIds } = await cdp.send('Target.getBrowserContexts');
  // A browser names its own context for a page of it, and before Chromium 156 it knows no context by that name.
  const isCreated = browserContextIds.some((id) => id === contextId);
  return (await cdp.send('Storage.getCookies', isCreated ? { browserContextId: contextId } : {})).cookies;
}

/** Whether a document or a worker, and all that contain it, are of the site of a server. */
async function isOfSite(
  server: URL,
  session: Session,
  { origin, frameId }: Place,
  { targets, cdp }: Context,
): Promise<boolean> {
  const page = pageOf(session);
  // A frame with a process of its own is of another site than the page.
  if (page.target.type === 'iframe') return false;
  const origins = [origin];
  if (page.target.type === 'page') {
    const frames = await targets.frames(page, session === page ? frameId : page.target.id);
    if (frames.length === 0) return false;
    origins.push(...frames.map(({ securityOrigin = '' }) => securityOrigin));
  }
  for (const one of origins) {
    const document = URL.canParse(one) ? new URL(one) : undefined;
    if (document?.protocol !== server.protocol) return false;
    if (!(await areOfOneSite([document, server], cdp, page.id))) return false;
  }
  return true;
}

function isFor({ domain, path, secure }: Cookie, url: URL): boolean {
  const { hostname, pathname } = url;
  const isDomain = domain.startsWith('.')
    ? hostname === domain.slice(1) || hostname.endsWith(domain)
    : hostname === domain;
  const isPath = pathname === path || pathname.startsWith(path.endsWith('/') ? path : `${path}/`);
  return isDomain && isPath && (!secure || isTrustworthy(url));
}

/**
 * Whether two hosts are of one site. The browser knows the public suffixes, such as `co.uk`; an older one, which does not say it, counts
 * the last two labels of a name.
 *
 * @param sessionId Of a page, or a worker.
 */
async function areOfOneSite(
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
