import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { prepareBidi } from '../bidi/bidi-socket.js';
import { prepareCdp } from './cdp-socket.js';
import type { DashboardFeed } from '../dashboard/dashboard-feed.js';
import type { Protocol } from '../events.js';
import { HttpFault, notFound, toFault } from '../http/answer.js';
import { checkSource, urlOf } from '../http/request.js';
import { prepareLiveView } from '../live/live-view.js';
import { rightOf } from '../pages/live-page.js';
import { invalidLink, tokenOf } from '../pages/page.js';
import type { Lease, OpenSocket } from '../pool/lease.js';
import type { PoolSet } from '../pool/pool-set.js';
import { refuseUpgrade } from '../../shared/loopback-server.js';
import type { Audience } from './jwt.js';

/** An upgrade request, as Node's HTTP server passes it on. */
export type Upgrade = [request: IncomingMessage, socket: Socket, head: Buffer];

interface Served {
  readonly pools: PoolSet;
  readonly dashboard: DashboardFeed;
}

/** Opens the WebSocket of a lease, of a live view or of the dashboard, or answers with an error. */
export async function upgrade({ pools, dashboard }: Served, ...received: Upgrade): Promise<void> {
  const [request, socket] = received;
  try {
    checkSource(request, pools.host);
    const url = urlOf(request);
    if (url.pathname === '/') dashboard.open(...received);
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
  readonly prepare: () => OpenSocket | Promise<OpenSocket>;
}

/** The last part of the path of a protocol's WebSocket. */
const PATHS: Readonly<Record<Audience, string>> = { cdp: 'cdp', bidi: 'session' };

async function findLeaseSocket(pools: PoolSet, url: URL): Promise<FoundSocket> {
  const [, sessionId = '', path] = /^\/browsers\/([^/]+)\/([^/]+)$/.exec(url.pathname) ?? [];
  const protocol = (['cdp', 'bidi'] as const).find((one) => PATHS[one] === path);
  if (!protocol) throw notFound('There is no WebSocket at this path.');
  const holder = await pools.tokens.verify(url.searchParams.get('jwt') ?? '', protocol);
  const lease = holder?.sessionId === sessionId ? pools.lease(sessionId) : undefined;
  // The session may have a later lease: the jwt is valid only for its own lease.
  if (!lease || lease.id !== holder?.leaseId) throw unauthorized();
  const prepare = () => (protocol === 'cdp' ? prepareCdp() : prepareBidi(pools.quirks.bidiSession));
  return { lease, protocol, prepare };
}

function findLiveView(pools: PoolSet, url: URL): FoundSocket {
  const token = tokenOf(url.searchParams);
  const lease = pools.leases.find(({ links }) => rightOf(links, token));
  if (!lease) throw invalidLink('live');
  const mayControl = rightOf(lease.links, token) === 'control';
  return { lease, protocol: 'live-view', prepare: () => prepareLiveView(pools, { mayControl }) };
}

async function openSocket(pools: PoolSet, found: FoundSocket, received: Upgrade): Promise<void> {
  const { lease, protocol, prepare } = found;
  const { sessionId } = lease.browser;
  const [, socket] = received;
  const onOpen = protocol === 'live-view' ? () => {} : pools.chaos.upgrade(socket);
  if (!onOpen) return;
  const open = await prepare();
  if (lease.ended || socket.destroyed) throw unauthorized();
  const disconnect = lease.connect(open(lease, ...received));
  onOpen(lease, disconnect);
  pools.log({ type: 'connected', sessionId, protocol });
  socket.once('close', () => {
    disconnect();
    pools.log({ type: 'disconnected', sessionId, protocol });
  });
}

/** URL of a WebSocket of a lease. */
export async function websocketUrl(
  { host, tokens }: PoolSet,
  lease: Lease,
  audience: Audience,
): Promise<string> {
  const jwt = await tokens.sign(lease, audience);
  return `ws://${host}/browsers/${lease.browser.sessionId}/${PATHS[audience]}?jwt=${jwt}`;
}

function unauthorized(): HttpFault {
  return new HttpFault(401, 'unauthorized', 'The jwt of this WebSocket URL is missing, wrong or expired.');
}

function refuse(socket: Socket, { status, body }: HttpFault): void {
  const headers = { 'content-type': 'application/json', 'x-request-id': randomUUID() };
  refuseUpgrade(socket, status, { headers, body: JSON.stringify(body) });
}
