import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { refuseUpgrade } from '../../net/loopback-server.js';
import type { DashboardFeed } from '../dashboard/dashboard-feed.js';
import type { Protocol } from '../events.js';
import { HttpFault, notFound, toFault } from '../http/answer.js';
import { checkSource, urlOf } from '../http/request.js';
import { LiveView, modeOf } from '../live/live-view.js';
import { rightOf } from '../pages/live-page.js';
import { invalidLink, tokenOf } from '../pages/page.js';
import type { Lease } from '../pool/lease.js';
import type { PoolSet } from '../pool/pool-set.js';
import { loadBidiLibrary } from './bidi-session.js';
import { BidiSocket } from './bidi-socket.js';
import { CdpSocket } from './cdp-socket.js';
import type { Audience } from './jwt.js';
import { acceptWebSocket, type Upgrade } from './websocket.js';

/** What the server serves. */
export interface Served {
  readonly pools: PoolSet;
  readonly dashboard: DashboardFeed;
}

/** Opens the WebSocket of a lease, of a live view or of the dashboard, or answers with an error. */
export async function upgrade({ pools, dashboard }: Served, ...received: Upgrade): Promise<void> {
  const [request, socket] = received;
  try {
    checkSource(request, pools.host);
    const url = urlOf(request);
    if (url.pathname === '/') dashboard.open(received);
    else if (url.pathname === '/live') await openSocket(pools, findLiveView(pools, url), received);
    else await openSocket(pools, await findLeaseSocket(pools, url), received);
  } catch (error) {
    refuse(socket, toFault(error));
  }
}

/** A WebSocket that its URL authorizes. */
interface FoundSocket {
  readonly lease: Lease;
  readonly protocol: Protocol;
  /** Loads what the protocol needs. */
  readonly prepare: () => Promise<(websocket: WebSocket) => OpenSocket>;
}

/** An open WebSocket of a lease. */
interface OpenSocket {
  /** Ends the connection. No further command reaches the browser. */
  cut(): void;
}

/** Maximum size of a message of a client, in bytes. Text that is pasted into a live view can be long. */
const MOST_BYTES: Readonly<Record<Protocol, number>> = {
  cdp: 256 * 1024 * 1024,
  bidi: 256 * 1024 * 1024,
  'live-view': 1024 * 1024,
};

/** The last part of the path of a protocol's WebSocket. */
const PATHS: Readonly<Record<Audience, string>> = { cdp: 'cdp', bidi: 'session' };

async function findLeaseSocket(pools: PoolSet, url: URL): Promise<FoundSocket> {
  const [, sessionId = '', path] = /^\/browsers\/([^/]+)\/([^/]+)$/.exec(url.pathname) ?? [];
  const protocol = (['cdp', 'bidi'] as const).find((one) => PATHS[one] === path);
  if (!protocol) throw notFound('There is no WebSocket at this path.');
  const lease = pools.lease(sessionId);
  const jwt = url.searchParams.get('jwt') ?? '';
  // The session may have a later lease: the jwt is valid only for its own lease.
  if (!lease || !(await pools.tokens.isValid(jwt, lease, protocol))) throw unauthorized();
  const prepare = async () => {
    if (protocol === 'cdp') return (socket: WebSocket) => new CdpSocket(socket, lease.browser.chromium);
    const library = await loadBidiLibrary();
    return (socket: WebSocket) => new BidiSocket(socket, library, lease, pools.quirks.bidiSession);
  };
  return { lease, protocol, prepare };
}

function findLiveView(pools: PoolSet, { searchParams: query }: URL): FoundSocket {
  const token = tokenOf(query);
  for (const lease of pools.leases) {
    const right = rightOf(lease.links, token);
    if (!right) continue;
    const mode = modeOf(pools, lease, right, query);
    const open = (socket: WebSocket) => new LiveView(socket, lease.browser.chromium, mode);
    return { lease, protocol: 'live-view', prepare: async () => open };
  }
  throw invalidLink('live');
}

async function openSocket(pools: PoolSet, found: FoundSocket, received: Upgrade): Promise<void> {
  const { lease, protocol, prepare } = found;
  const { sessionId } = lease;
  const [, socket] = received;
  const onOpen = protocol === 'live-view' ? () => {} : pools.chaos.upgrade(socket);
  if (!onOpen) return;
  const open = await prepare();
  if (lease.ended || socket.destroyed) throw unauthorized();
  acceptWebSocket(received, MOST_BYTES[protocol], (websocket) => {
    const opened = open(websocket);
    const disconnect = lease.connect(() => opened.cut());
    onOpen(lease, disconnect);
    pools.log({ type: 'connected', sessionId, protocol });
    socket.once('close', () => {
      disconnect();
      pools.log({ type: 'disconnected', sessionId, protocol });
    });
  });
}

/** URL of a WebSocket of a lease. */
export async function websocketUrl(
  { host, tokens }: PoolSet,
  lease: Lease,
  audience: Audience,
): Promise<string> {
  const jwt = await tokens.sign(lease, audience);
  return `ws://${host}/browsers/${lease.sessionId}/${PATHS[audience]}?jwt=${jwt}`;
}

function unauthorized(): HttpFault {
  return new HttpFault(401, 'unauthorized', 'The jwt of this WebSocket URL is missing, wrong or expired.');
}

function refuse(socket: Socket, { status, body }: HttpFault): void {
  const headers = { 'content-type': 'application/json', 'x-request-id': randomUUID() };
  refuseUpgrade(socket, status, { headers, body: JSON.stringify(body) });
}
