import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { prepareBidi } from '../bidi/prepare-bidi.js';
import type { DashboardFeed } from '../dashboard/dashboard-feed.js';
import type { Log } from '../events.js';
import { checkSource } from '../http/guard.js';
import { HttpFault, notFound, toFault } from '../http/http-fault.js';
import { prepareLiveView } from '../live/prepare-live-view.js';
import type { Lease } from '../pool/lease.js';
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
  const lease = await findLease(pools, sessionId, protocol, jwt);
  const open = await prepare(protocol, pools);
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

const PROTOCOLS: ReadonlyMap<string, Audience> = new Map([
  ['cdp', 'cdp'],
  ['session', 'bidi'],
  ['live', 'live-view'],
]);

function readUrl({ url = '/' }: IncomingMessage): { sessionId: string; protocol: Audience; jwt: string } {
  const { pathname, searchParams } = new URL(url, 'http://127.0.0.1');
  const [, sessionId, path = ''] = /^\/browsers\/([^/]+)\/([^/]+)$/.exec(pathname) ?? [];
  const protocol = PROTOCOLS.get(path);
  if (sessionId === undefined || !protocol) throw notFound('There is no such websocket.');
  return { sessionId, protocol, jwt: searchParams.get('jwt') ?? '' };
}

/** The lease for which the jwt was signed, as long as it lasts. */
async function findLease(pools: PoolSet, sessionId: string, audience: Audience, jwt: string): Promise<Lease> {
  const holder = await pools.tokens.verify(jwt, audience);
  if (holder?.sessionId !== sessionId) throw unauthorized();
  const lease = pools.lease(sessionId);
  if (lease?.number !== holder.lease) throw unauthorized();
  return lease;
}

async function prepare(protocol: Audience, { quirks }: PoolSet): Promise<OpenSocket> {
  switch (protocol) {
    case 'cdp':
      return openCdpTunnel;
    case 'bidi':
      return await prepareBidi(quirks.bidiSession);
    case 'live-view':
      return await prepareLiveView();
  }
}

function unauthorized(): HttpFault {
  return new HttpFault(
    401,
    'unauthorized',
    'The jwt of this websocket URL is missing, wrong or no longer good.',
  );
}
