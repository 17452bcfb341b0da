import { isIP } from 'node:net';
import type { CdpClient } from '../../wire/cdp-client.js';
import type { EventParams, ResultOf, Session } from '../../wire/layer.js';
import { isTrustworthy, valueOf } from './exposed-request.js';
import type { ExposedResponse } from './response-bodies.js';
import type { Context } from './context.js';
import type { ExposedUrl } from './exposed-hosts.js';
import type { Channel } from './bridge.js';
import { pageOf, type Place } from './targets.js';

type Cookie = ResultOf<'Storage.getCookies'>['cookies'][number];

/** Whether a response is kept from pages of other origins: the browser checks this only on its own connections. */
export async function isKeptBack(
  { request, frameId, resourceType = '' }: EventParams<'Fetch.requestPaused'>,
  { headers, body }: Pick<ExposedResponse, 'headers' | 'body'>,
  { targets, cdp }: Context,
): Promise<boolean> {
  if (resourceType === 'Document') return false;
  // A request of CORS has rules of its own.
  const isAllowed = valueOf('access-control-allow-origin', headers) !== undefined;
  if (request.headers['Origin'] !== undefined && isAllowed) return false;
  const [origin, session] = await Promise.all([targets.originOf(frameId), targets.containing(frameId)]);
  if (origin === undefined || session === undefined) return false;
  const server = new URL(request.url);
  if (origin === server.origin) return false;
  if (LOADED_OPAQUELY.test(resourceType) && isUnreadable(headers, body)) return true;
  let policy = valueOf('cross-origin-resource-policy', headers) ?? '';
  if (!/^(same-(origin|site)|cross-origin)$/.test(policy)) {
    const embedder = await embedderPolicyOf(frameId, session, cdp);
    policy = embedder === 'RequireCorp' ? 'same-origin' : 'cross-origin';
  }
  if (policy === 'cross-origin') return false;
  // A document without an origin is of no site.
  if (!URL.canParse(origin)) return true;
  const page = new URL(origin);
  const isLessSecure = page.protocol !== 'https:' && server.protocol === 'https:';
  if (policy === 'same-origin' || isLessSecure) return true;
  return !(await areOfOneSite([page, server], cdp, session.id));
}

/** Returns the policy of a document for what it embeds, as the browser names it. A service worker and a shared worker have none here. */
async function embedderPolicyOf(frameId: string, session: Session, cdp: CdpClient): Promise<string> {
  const asked = cdp.send('Network.getSecurityIsolationStatus', { frameId }, pageOf(session).id);
  return asked.then(
    ({ status }) => status.coep?.value ?? '',
    () => '',
  );
}

/** What a page can run or show, but not read. */
const LOADED_OPAQUELY = /^(Script|Stylesheet|Image|Media)$/;
/** Types of which a page of another origin can load nothing opaquely. */
const NEVER_LOADED =
  /^(application\/(x-)?(gzip|protobuf|protobuffer|zip|pdf|ms(word|excel|powerpoint)(-template)?)|application\/vnd\.(ces-quick|ms-|openxmlformats-officedocument|\w+-openxml).*|multipart\/(byteranges|signed)|text\/(csv|event-stream|vtt))$/;
/** The types of data, and the beginning of such a body. A script can begin with a comment of HTML, which ends with its line. */
const DATA: readonly (readonly [type: RegExp, beginning: RegExp])[] = [
  [
    /^text\/(html|plain)$/,
    /^\s*(<!--((?!-->)[^])*-->[^\r\n]*[\r\n]\s*)*<(!doctype html|script|html|head|iframe|h1|div|font|table|a|style|title|b|body|br|p)[\s>]/i,
  ],
  [/^(text\/(xml|plain)|application\/xml|(?!image\/svg).*\+xml)$/, /^\s*<\?xml/],
  [/^(text\/(json|plain)|application\/json|.*\+json)$/, /^\s*\{\s*"(?:[^"\\]|\\.)*"\s*:/],
];
/** Bytes of a body in which its beginning is looked for. */
const SNIFFED = 1024;

/** Whether a response is data that pages of other origins may not load opaquely: the browser's Opaque Response Blocking. */
function isUnreadable(headers: readonly string[], [first]: readonly Buffer[]): boolean {
  const [type = ''] = (valueOf('content-type', headers) ?? '').toLowerCase().split(/[\s;]/);
  if (NEVER_LOADED.test(type)) return true;
  const isExact = /^nosniff$/i.test(valueOf('x-content-type-options', headers) ?? '');
  const text = String(first?.subarray(0, SNIFFED)).replace(/^\uFEFF/, '');
  return DATA.some(([types, beginning]) => types.test(type) && (isExact || beginning.test(text)));
}

/**
 * Whether the browser sends and stores the cookies of a request: an interception has them also where settings of the browser, or a document
 * without credentials, keep them back. Those that belong to one page only (`Partitioned`) are not used there either.
 */
export async function usesCookies(
  { request, frameId, resourceType }: EventParams<'Fetch.requestPaused'>,
  context: Context,
): Promise<boolean> {
  const { targets, cdp } = context;
  const session = await targets.containing(frameId);
  if (session === undefined) return true;
  const server = new URL(request.url);
  const isDocument = resourceType === 'Document';
  const [page, isTop] = [topOf(session), frameId === session.target.id && session.target.type === 'page'];
  if (isDocument && isTop) return true;
  if (!isTop && (await isCredentialless({ session, frameId, isDocument }, context))) return false;
  const own = isDocument ? undefined : await targets.originOf(frameId);
  const isOpaque = request.headers['Origin'] === undefined && own !== server.origin;
  if (!isDocument && isOpaque && (await embedderPolicyOf(frameId, session, cdp)) === 'Credentialless')
    return false;
  if (!(await blocksThirdParties(session, context))) return true;
  return !(await isAnyForeign([own, await originOfTop(page, context)], server, pageOf(session), cdp));
}

/** Returns the origin of a page. The browser names the URL of a new document before the origins of its scripts. */
async function originOfTop(
  page: Session | undefined,
  { targets, cdp }: Context,
): Promise<string | undefined> {
  if (page === undefined) return undefined;
  const { id: targetId } = page.target;
  const { targetInfo } = await cdp.send('Target.getTargetInfo', { targetId });
  const isOfWeb = /^https?:/.test(targetInfo.url) && URL.canParse(targetInfo.url);
  return isOfWeb ? new URL(targetInfo.url).origin : targets.knownOriginOf(page, targetId);
}

/** The page that contains a frame or a worker. Undefined for a worker of several pages. */
function topOf(session: Session): Session | undefined {
  const { parent, target } = session;
  if (target.type === 'page') return session;
  return parent && topOf(parent);
}

async function isAnyForeign(
  origins: readonly (string | undefined)[],
  server: URL,
  { id }: Session,
  cdp: CdpClient,
): Promise<boolean> {
  for (const origin of origins) {
    if (origin === undefined) continue;
    const document = URL.canParse(origin) ? new URL(origin) : undefined;
    if (document?.protocol !== server.protocol || !(await areOfOneSite([document, server], cdp, id)))
      return true;
  }
  return false;
}

/** Whether the browser blocks the cookies of third parties: a whole Chromium does, in each context but its own. */
async function blocksThirdParties({ target }: Session, { sender, cdp }: Context): Promise<boolean> {
  return !sender.isShell && isCreated(target.browserContextId, cdp).catch(() => true);
}

/** Whether a document of a frame, or the next one, is loaded without credentials: `<iframe credentialless>`. */
async function isCredentialless(
  { session, frameId, isDocument }: { session: Session; frameId: string; isDocument: boolean },
  context: Context,
): Promise<boolean> {
  const { cdp } = context;
  const { id } = pageOf(session);
  const { storageKey } = await cdp
    .send('Storage.getStorageKey', { frameId }, id)
    .catch(() => ({ storageKey: '' }));
  // The first part of a nonce.
  if (storageKey.includes('^1')) return true;
  if (!isDocument) return false;
  const parent = session.target.id === frameId ? await parentOf(session, context) : { session, frameId };
  if (!parent) return false;
  const within = parent.session;
  const attributes = await cdp
    .send('DOM.getFrameOwner', { frameId }, within.id)
    .then(({ backendNodeId }) => cdp.send('DOM.describeNode', { backendNodeId }, within.id))
    .then(
      ({ node }) => node.attributes ?? [],
      () => [],
    );
  return attributes.some((name, index) => index % 2 === 0 && name === 'credentialless');
}

/** Where the element of a frame is that has a session of its own. */
async function parentOf(
  { target }: Session,
  { targets, cdp }: Context,
): Promise<{ session: Session; frameId: string } | undefined> {
  const { targetInfo } = await cdp.send('Target.getTargetInfo', { targetId: target.id });
  const frameId = targetInfo.parentFrameId;
  const session = frameId === undefined ? undefined : await targets.containing(frameId);
  return session && { session, frameId: frameId! };
}

type Sender = Pick<Channel, 'session' | 'place'>;

/** Which cookies a WebSocket has: those of other sites only with `SameSite=None`. */
async function cookiesOfSocket(
  server: URL,
  { session, place }: Sender,
  context: Context,
): Promise<'all' | 'without SameSite' | 'none'> {
  const web = place && /^https?:/.test(place.origin) ? place : undefined;
  const of = web && { session, frameId: web.frameId, isDocument: false };
  if (of && (await isCredentialless(of, context))) return 'none';
  if (web && (await isOfSite(server, session, web, context))) return 'all';
  return (await blocksThirdParties(session, context)) ? 'none' : 'without SameSite';
}

/** The cookies that a browser sends with a WebSocket. */
export async function cookiesFor(url: ExposedUrl, sender: Sender, context: Context): Promise<string> {
  const { session } = sender;
  const server = new URL(url.replace(/^ws/, 'http'));
  const which = await cookiesOfSocket(server, sender, context);
  if (which === 'none') return '';
  const cookies = await cookiesOf(session.target.browserContextId, context.cdp).catch(() => []);
  const sent = cookies.filter(
    (cookie) =>
      isFor(cookie, server) &&
      cookie.partitionKey === undefined &&
      (cookie.sameSite === 'None' || which === 'all'),
  );
  // Browsers order cookies in this way.
  sent.sort((one, other) => other.path.length - one.path.length);
  return sent.map(({ name, value }) => (name === '' ? value : `${name}=${value}`)).join('; ');
}

/** What `"storage"` stands for, as CDP names it. */
const STORAGE = 'local_storage,indexeddb,websql,service_workers,cache_storage,file_systems';

/** Deletes what a response of a page names in `Clear-Site-Data`, as the browser does for its own connections. Never rejects. */
export async function clearSiteData(
  headers: readonly string[],
  { request, frameId }: EventParams<'Fetch.requestPaused'>,
  { targets, cdp }: Context,
): Promise<void> {
  const named = valueOf('clear-site-data', headers);
  const server = new URL(request.url);
  const session =
    named !== undefined && isTrustworthy(server) ? await targets.containing(frameId) : undefined;
  if (!named || !session) return;
  const { id, target } = pageOf(session);
  const isNamed = (what: string) => named.includes(`"${what}"`) || named.includes('"*"');
  const { origin } = server;
  const storage =
    isNamed('storage') && cdp.send('Storage.clearDataForOrigin', { origin, storageTypes: STORAGE }, id);
  const clearCookies = async () => {
    for (const { name, domain, path } of await cookiesOf(target.browserContextId, cdp))
      if (await areOfOneSite([new URL(`https://${domain.replace(/^\./, '')}`), server], cdp, id))
        await cdp.send('Network.deleteCookies', { name, domain, path }, id);
  };
  await Promise.allSettled([storage, isNamed('cookies') && clearCookies()]);
}

/** Number of cookies that one server can have, as in Chromium. */
const MOST_COOKIES = 180;

/** Stores the cookies that a server sets with the handshake of a WebSocket. Never rejects. @param lines Values of `Set-Cookie`. */
export async function storeCookies(
  lines: readonly string[],
  url: ExposedUrl,
  sender: Sender,
  context: Context,
): Promise<void> {
  const { cdp } = context;
  const server = new URL(url.replace(/^ws/, 'http'));
  const contextId = sender.session.target.browserContextId;
  try {
    const which = await cookiesOfSocket(server, sender, context);
    const of = (await isCreated(contextId, cdp)) ? { browserContextId: contextId } : {};
    const isKept = ({ sameSite, secure }: Pick<SetCookie, 'sameSite' | 'secure'>) =>
      which !== 'none' &&
      (which === 'all' || sameSite === 'None') &&
      (secure ? isTrustworthy(server) : sameSite !== 'None');
    const { id } = pageOf(sender.session);
    const store = async (line: string) => {
      const { domain, ...cookie } = readSetCookie(line, server);
      if (!isKept(cookie) || (domain !== undefined && !(await isOfDomain(server, domain, cdp, id)))) return;
      const isWide = domain !== undefined && domain.includes('.') && isIP(domain) === 0;
      const cookies = [isWide ? { ...cookie, domain: `.${domain}` } : cookie];
      // The browser refuses a command with one cookie that it would not store.
      await cdp.send('Storage.setCookies', { cookies, ...of });
    };
    await Promise.allSettled(lines.slice(0, MOST_COOKIES).map(store));
  } catch {
    // The page is closed.
  }
}

/** Whether a server may set cookies of a domain: the browser does not test it for a client. */
async function isOfDomain(server: URL, domain: string, cdp: CdpClient, sessionId: string): Promise<boolean> {
  if (server.hostname === domain) return true;
  if (!/^[\w-]+(\.[\w-]+)+$/.test(domain) || !server.hostname.endsWith(`.${domain}`)) return false;
  // No public suffix, such as `co.uk`.
  return areOfOneSite([server, new URL(`https://${domain}`)], cdp, sessionId);
}

type SetCookie = ReturnType<typeof readSetCookie>;

/** Reads a header `Set-Cookie`, with one character for each byte. */
function readSetCookie(line: string, server: URL) {
  const [pair = '', ...rest] = Buffer.from(line, 'latin1').toString().split(';');
  const [name, value] = parted(pair);
  const attributes = new Map(rest.map((one) => parted(one.includes('=') ? one : `${one}=`)));
  const of = (key: string) => [...attributes].findLast(([one]) => one.toLowerCase() === key)?.[1];
  const [domain, path, age, date, site] = ['domain', 'path', 'max-age', 'expires', 'samesite'].map(of);
  const expires =
    age !== undefined && /^-?\d+$/.test(age)
      ? Date.now() / 1000 + Number(age)
      : Date.parse(date ?? '') / 1000;
  const sameSite = ['Strict', 'Lax', 'None'].find((one) => one.toLowerCase() === site?.toLowerCase());
  return {
    url: server.href,
    name,
    value,
    secure: of('secure') !== undefined,
    httpOnly: of('httponly') !== undefined,
    ...(domain && { domain: domain.replace(/^\./, '').toLowerCase() }),
    ...(path?.startsWith('/') && { path }),
    // The browser has no cookie without an end for 0.
    ...(!Number.isNaN(expires) && { expires: Math.max(expires, 1) }),
    ...(sameSite !== undefined && { sameSite }),
  };
}

/** A cookie without a name is only a value. */
function parted(text: string): [name: string, value: string] {
  const at = text.indexOf('=');
  return [text.slice(0, Math.max(at, 0)).trim(), text.slice(at + 1).trim()];
}

async function cookiesOf(contextId: string | undefined, cdp: CdpClient): Promise<readonly Cookie[]> {
  const of = (await isCreated(contextId, cdp)) ? { browserContextId: contextId } : {};
  return (await cdp.send('Storage.getCookies', of)).cookies;
}

/** Whether a client has created a context. A browser names its own one for a page of it; before Chromium 156, it finds none by that name. */
async function isCreated(contextId: string | undefined, cdp: CdpClient): Promise<boolean> {
  const { browserContextIds } = await cdp.send('Target.getBrowserContexts');
  return browserContextIds.some((id) => id === contextId);
}

/** Whether a document or a worker, and all that contain it, are of the site of a server. */
async function isOfSite(
  server: URL,
  session: Session,
  { origin, frameId }: Place,
  context: Context,
): Promise<boolean> {
  const page = pageOf(session);
  const isWithin = /^(page|iframe)$/.test(page.target.type);
  const above = isWithin
    ? await originsAbove(page, session === page ? frameId : page.target.id, context)
    : [];
  return above !== undefined && !(await isAnyForeign([origin, ...above], server, page, context.cdp));
}

/** Returns the origins of a frame and of all that contain it. Undefined if one is not there any longer. */
async function originsAbove(
  session: Session,
  frameId: string,
  context: Context,
): Promise<readonly string[] | undefined> {
  const frames = await context.targets.frames(session, frameId);
  const origins = frames.map(({ securityOrigin = '' }) => securityOrigin);
  if (frames.length === 0 || session.target.type === 'page') return frames.length === 0 ? undefined : origins;
  // A frame with a process of its own, which can be of the site of the page.
  const parent = await parentOf(session, context).catch(() => undefined);
  const above = parent && (await originsAbove(parent.session, parent.frameId, context));
  return above && [...origins, ...above];
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
 * Whether two hosts are of one site. The browser has the list of public suffixes, such as `co.uk`; an older one, which does not say it, counts
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
