import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { WebSocket } from 'ws';
import { sourceOver } from '../../wire/cdp-source.js';
import { extensionOf, refuseUpgrade } from '../../net/loopback-server.js';
import type { Chromium } from '../browser/chromium.js';
import type { FeatureContext, LocalFeature } from '../feature.js';
import { HttpFault, notFound, toFault } from '../http/answer.js';
import { checkSource, urlOf } from '../http/request.js';
import type { ServedLease } from '../pool/served-lease.js';
import { loadBidiLibrary } from './bidi-session.js';
import { BidiSocket } from './bidi-socket.js';
import { ServedCdpSocket } from './cdp-socket.js';
import { PATHS, type Audience, type LeaseTokens } from './jwt.js';
import { NativeBidiSocket } from './native-bidi-socket.js';
import { LARGEST_OF_POOL } from '../../shared/message-limit.js';
import { openLeaseSocket, unauthorized, type LeaseSocket } from './lease-socket.js';
import type { Upgrade } from '../../net/accept-websocket.js';

/** What the WebSockets use. */
interface Sockets extends Pick<FeatureContext, 'host' | 'pools' | 'quirks' | 'log'> {
  readonly tokens: LeaseTokens;
  readonly features: readonly LocalFeature[];
}

/** Opens the WebSocket of a lease or of a feature, or answers with an error. */
export async function upgrade(sockets: Sockets, ...received: Upgrade): Promise<void> {
  const [request, socket] = received;
  try {
    const url = urlOf(request);
    const ofFeature = sockets.features.find((feature) => feature.sockets?.[url.pathname]);
    checkSource(request, sockets.host, !ofFeature);
    if (ofFeature) await ofFeature.sockets![url.pathname]!(received, url);
    else await openClient(sockets, url, received);
  } catch (error) {
    const { status, body } = toFault(error);
    const headers = { 'content-type': 'application/json', 'x-request-id': randomUUID() };
    refuseUpgrade(socket, status, { headers, body: JSON.stringify(body) });
  }
}

/** Opens the WebSocket of a client, CDP or BiDi. */
async function openClient(sockets: Sockets, url: URL, received: Upgrade): Promise<void> {
  const { lease, protocol } = await authorize(sockets, url);
  await checkExtension(received[0], lease);
  const open = await opener(sockets, lease, protocol);
  openLeaseSocket(sockets.log, { lease, protocol, maxBytes: LARGEST_OF_POOL, open }, received);
}

/**
 * An extension that is loaded in a leased browser may be a client of this browser, if it has the URL. Extensions of other browsers may not.
 *
 * @throws HttpFault
 */
async function checkExtension({ headers }: IncomingMessage, lease: ServedLease): Promise<void> {
  const id = extensionOf(headers);
  if (id === undefined) return;
  const { chromium } = lease.browser.process;
  const isLoaded = chromium !== undefined && (await extensionsOf(chromium)).includes(id);
  if (!isLoaded) throw new HttpFault(403, 'forbidden', NOT_LOADED);
}

const NOT_LOADED = 'An extension can connect only to a browser in which it is loaded.';

/** Resolves to none if the browser ends, or has no command for it. */
async function extensionsOf({ pipe }: Chromium): Promise<readonly string[]> {
  const cdp = await sourceOver(pipe)().catch(() => undefined);
  const answer = await cdp?.send('Extensions.getExtensions').catch(() => undefined);
  cdp?.close();
  return answer?.extensions.map(({ id }) => id) ?? [];
}

async function authorize({ pools, tokens }: Sockets, url: URL) {
  const [, sessionId = '', path] = /^\/browsers\/([^/]+)\/([^/]+)$/.exec(url.pathname) ?? [];
  const protocol = (['cdp', 'bidi'] as const).find((one) => PATHS[one] === path);
  if (!protocol) throw notFound('There is no WebSocket at this path.');
  const lease = pools.lease(sessionId);
  const jwt = url.searchParams.get('jwt') ?? '';
  // The session may have a later lease: the jwt is valid only for its own lease.
  if (!lease || !(await tokens.isValid(jwt, lease, protocol))) throw unauthorized();
  return { lease, protocol };
}

/** Loads what the protocol needs. */
async function opener(
  { quirks }: Sockets,
  lease: ServedLease,
  protocol: Audience,
): Promise<LeaseSocket['open']> {
  const { chromium, sessions } = lease.browser.process;
  if (sessions && protocol === 'bidi') return (socket: WebSocket) => new NativeBidiSocket(socket, sessions);
  if (!chromium) throw new HttpFault(501, 'not_implemented', 'The browser has no CDP: use WebDriver BiDi.');
  if (protocol === 'cdp') return (socket: WebSocket) => new ServedCdpSocket(socket, chromium);
  const library = await loadBidiLibrary();
  return (socket: WebSocket) =>
    new BidiSocket(socket, library, { lease, chromium, kind: quirks.bidiSession });
}
