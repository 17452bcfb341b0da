import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { prepareBidi } from '../bidi/bidi-socket.js';
import { prepareCdp } from './cdp-socket.js';
import type { DashboardFeed } from '../dashboard/dashboard-feed.js';
import type { Protocol } from '../events.js';
import { HttpFault, notFound, toFault } from '../http/answer.js';
import { checkSource, urlOf } from '../http/request.js';
import { prepareLiveView } from '../live/live-view.js';
import type { Lease, OpenSocket } from '../pool/lease.js';
import type { PoolSet } from '../pool/pool-set.js';
import type { Audience } from './jwt.js';

/** An upgrade request, as Node's HTTP server passes it on. */
export type Upgrade = [request: IncomingMessage, socket: Socket, head: Buffer];

/** Opens the WebSocket of a lease or of the dashboard, or answers with an error. */
export async function upgrade(pools: PoolSet, dashboard: DashboardFeed, ...received: Upgrade): Promise<void> {
  const [request, socket] = received;
  try {
    checkSource(request, pools.host);
    const url = urlOf(request);
    if (url.pathname === '/') await dashboard.open(...received);
    else await openLeaseSocket(pools, url, received);
  } catch (error) {
    refuse(socket, toFault(error));
  }
}

async function openLeaseSocket(pools: PoolSet, url: URL, received: Upgrade): Promise<void> {
  const [, sessionId = '', path = ''] = /^\/browsers\/([^/]+)\/([^/]+)$/.exec(url.pathname) ?? [];
  const audiences = (Object.keys(SOCKETS) as Audience[]).filter(
    (audience) => SOCKETS[audience].path === path,
  );
  if (audiences.length === 0) throw notFound('There is no WebSocket at this path.');
  const holder = await pools.tokens.verify(url.searchParams.get('jwt') ?? '', audiences);
  const lease = holder?.sessionId === sessionId ? pools.lease(sessionId) : undefined;
  // The session may have a later lease: the jwt is valid only for its own lease.
  if (!holder || lease?.id !== holder.leaseId) throw unauthorized();
  const { protocol, prepare } = SOCKETS[holder.audience];
  const [, socket] = received;
  const onOpen = protocol === 'live-view' ? () => {} : pools.chaos.upgrade(socket);
  if (!onOpen) return;
  const open = await prepare(pools);
  if (lease.ended || socket.destroyed) throw unauthorized();
  const disconnect = lease.connect(open(lease, ...received));
  onOpen(lease, disconnect);
  pools.log({ type: 'connected', sessionId, protocol });
  socket.once('close', () => {
    disconnect();
    pools.log({ type: 'disconnected', sessionId, protocol });
  });
}

interface LeaseSocket {
  /** Last part of the path. */
  readonly path: string;
  readonly protocol: Protocol;
  readonly prepare: (pools: PoolSet) => OpenSocket | Promise<OpenSocket>;
}

/** The WebSockets of a lease, by the audience of the jwt that opens them. */
const SOCKETS: Readonly<Record<Audience, LeaseSocket>> = {
  cdp: { path: 'cdp', protocol: 'cdp', prepare: prepareCdp },
  bidi: { path: 'session', protocol: 'bidi', prepare: ({ quirks }) => prepareBidi(quirks.bidiSession) },
  'live-view': {
    path: 'live',
    protocol: 'live-view',
    prepare: (pools) => prepareLiveView(pools, { mayControl: true }),
  },
  'live-watch': {
    path: 'live',
    protocol: 'live-view',
    prepare: (pools) => prepareLiveView(pools, { mayControl: false }),
  },
};

/** URL of a WebSocket of a lease. */
export async function websocketUrl(
  { host, tokens }: PoolSet,
  lease: Lease,
  audience: 'cdp' | 'bidi',
): Promise<string> {
  const jwt = await tokens.sign(lease, audience);
  return `ws://${host}/browsers/${lease.browser.sessionId}/${SOCKETS[audience].path}?jwt=${jwt}`;
}

function unauthorized(): HttpFault {
  return new HttpFault(401, 'unauthorized', 'The jwt of this WebSocket URL is missing, wrong or expired.');
}

/** Answers an upgrade request with an error and closes the connection. */
function refuse(socket: Socket, { status, body }: HttpFault): void {
  const text = JSON.stringify(body);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    `x-request-id: ${randomUUID()}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`);
  // Destroyed, because a client that never closes its side would keep the socket open.
  socket.setTimeout(1_000, () => socket.destroy());
}
