import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { prepareBidi } from '../bidi/prepare-bidi.js';
import type { DashboardFeed } from '../dashboard/dashboard-feed.js';
import type { Log, Protocol } from '../events.js';
import { checkSource } from '../http/guard.js';
import { HttpFault, notFound, toFault } from '../http/http-fault.js';
import { LIVE_AUDIENCES } from '../live/live-view-url.js';
import { prepareLiveView } from '../live/prepare-live-view.js';
import type { PoolSet } from '../pool/pool-set.js';
import { openCdpTunnel } from './cdp-tunnel.js';
import type { Audience } from './jwt.js';
import type { OpenSocket } from './open-socket.js';
import { refuse } from './refuse.js';

/** What an upgrade is checked against. */
export interface UpgradeHost {
  readonly pools: PoolSet;
  readonly dashboard: DashboardFeed;
  readonly port: number;
  readonly log: Log;
}

/** Opens the websocket that an upgrade request asks for, or refuses it in due form. */
export async function upgrade(
  host: UpgradeHost,
  request: IncomingMessage,
  socket: Socket,
  head: Buffer,
): Promise<void> {
  try {
    checkSource(request, host.port);
    if (pathOf(request) === '/') await host.dashboard.open(request, socket, head);
    else await openOfLease(host, request, socket, head);
  } catch (error) {
    refuse(socket, toFault(error));
  }
}

async function openOfLease(
  { pools, log }: UpgradeHost,
  request: IncomingMessage,
  socket: Socket,
  head: Buffer,
): Promise<void> {
  const { sessionId, protocol, jwt } = readUrl(request);
  const holder = await pools.tokens.verify(jwt, AUDIENCES[protocol]);
  const lease = holder?.sessionId === sessionId ? pools.lease(sessionId) : undefined;
  // The jwt is good as long as the lease lasts for which it was signed.
  if (!holder || lease?.number !== holder.lease) throw unauthorized();
  const open = await prepare(holder.audience, pools);
  if (lease.ended || socket.destroyed) throw unauthorized();
  const disconnect = lease.connect(open(lease, request, socket, head));
  log({ type: 'connected', sessionId, protocol });
  socket.once('close', () => {
    disconnect();
    log({ type: 'disconnected', sessionId, protocol });
  });
}

function pathOf({ url = '/' }: IncomingMessage): string {
  return url.split('?', 1)[0]!;
}

const PROTOCOLS: ReadonlyMap<string, Protocol> = new Map([
  ['cdp', 'cdp'],
  ['session', 'bidi'],
  ['live', 'live-view'],
]);

/** The jwts that open each. */
const AUDIENCES: Readonly<Record<Protocol, readonly Audience[]>> = {
  cdp: ['cdp'],
  bidi: ['bidi'],
  'live-view': LIVE_AUDIENCES,
};

function readUrl({ url = '/' }: IncomingMessage): { sessionId: string; protocol: Protocol; jwt: string } {
  const { pathname, searchParams } = new URL(url, 'http://127.0.0.1');
  const [, sessionId, path = ''] = /^\/browsers\/([^/]+)\/([^/]+)$/.exec(pathname) ?? [];
  const protocol = PROTOCOLS.get(path);
  if (sessionId === undefined || !protocol) throw notFound('There is no such websocket.');
  return { sessionId, protocol, jwt: searchParams.get('jwt') ?? '' };
}

async function prepare(audience: Audience, pools: PoolSet): Promise<OpenSocket> {
  switch (audience) {
    case 'cdp':
      return openCdpTunnel;
    case 'bidi':
      return await prepareBidi(pools.quirks.bidiSession);
    case 'live-view':
      return await prepareLiveView(pools, { mayControl: true });
    case 'live-watch':
      return await prepareLiveView(pools, { mayControl: false });
  }
}

function unauthorized(): HttpFault {
  return new HttpFault(
    401,
    'unauthorized',
    'The jwt of this websocket URL is missing, wrong or no longer good.',
  );
}
