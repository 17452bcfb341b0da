import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';
import { urlOf } from '../http/request.js';
import { hasLiveView, liveViewUrl } from '../pages/live-page.js';
import { invalidLink, jwtOf } from '../pages/page.js';
import { replayViewUrl } from '../pages/replay-page.js';
import type { ChromiumPool } from '../pool/chromium-pool.js';
import type { Lease, PooledChromium, Waiter } from '../pool/lease.js';
import type { PoolSet } from '../pool/pool-set.js';
import type { Recording } from '../replays/recording.js';

/** Milliseconds between a change and its message, so that a burst of changes is one message. */
const DELAY = 100;

/** Sends the state of the pools to all open dashboards after each change. */
export class DashboardFeed {
  readonly #pools: PoolSet;
  readonly #sockets = new Set<WebSocket>();
  #timer: NodeJS.Timeout | undefined;

  constructor(pools: PoolSet) {
    this.#pools = pools;
  }

  /** Opens the WebSocket of a dashboard. @throws HttpFault if its jwt is not valid. */
  async open(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const jwt = jwtOf(urlOf(request).searchParams);
    if (!(await this.#pools.tokens.verifyDashboard(jwt))) throw invalidLink();
    const server = new WebSocketServer({ noServer: true, clientTracking: false, maxPayload: 1024 });
    server.handleUpgrade(request, socket, head, (websocket) => this.#add(websocket));
  }

  /** Schedules a message; to be called after each event of the pools. */
  changed(): void {
    if (this.#sockets.size === 0) return;
    this.#timer ??= setTimeout(() => void this.#send(), DELAY).unref();
  }

  #add(socket: WebSocket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    socket.on('error', () => socket.terminate());
    void this.#send();
  }

  async #send(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const state = JSON.stringify(await readDashboard(this.#pools));
    for (const socket of this.#sockets) socket.send(state, () => {});
  }
}

/** Recordings on the dashboard. The API lists all of them. */
const MAX_REPLAYS = 100;

/** The content of the dashboard, as its page receives it. */
export type DashboardState = Awaited<ReturnType<typeof readDashboard>>;
export type PoolState = DashboardState['pools'][number];
export type BrowserRow = Awaited<ReturnType<typeof leasedRow>>;
export type WaitingRow = ReturnType<typeof waitingRow>;
export type ReplayRow = DashboardState['replays'][number];

async function readDashboard(pools: PoolSet) {
  const latest = pools.recorder.list().slice(-MAX_REPLAYS).reverse();
  return {
    pools: await Promise.all([...pools].map((pool) => poolState(pools, pool))),
    replays: await Promise.all(latest.map((recording) => replayRow(pools, recording))),
  };
}

async function poolState(pools: PoolSet, pool: ChromiumPool) {
  const { id, name, size, headless } = pool.settings;
  const { starting, granted, expired } = pool.stats;
  const leased = await Promise.all([...pool.leases].map((lease) => leasedRow(pools, pool, lease)));
  return {
    id,
    name,
    size,
    headless,
    starting,
    totals: { granted, expired },
    browsers: [...leased, ...[...pool.idle].map(idleRow)],
    waiting: [...pool.waiting].map(waitingRow),
  };
}

async function leasedRow(pools: PoolSet, pool: ChromiumPool, lease: Lease) {
  const { browser, request, since, connections } = lease;
  const live = async () => ({
    watchUrl: await liveViewUrl(pools, lease, 'live-watch'),
    controlUrl: await liveViewUrl(pools, lease),
  });
  return {
    sessionId: browser.sessionId,
    state: 'leased' as 'leased' | 'idle',
    ...aged(since),
    connections,
    leaseName: request.name,
    tags: request.tags,
    live: hasLiveView(pools, pool) ? await live() : undefined,
  };
}

function idleRow({ sessionId, idleSince }: PooledChromium): BrowserRow {
  const unused = { connections: 0, leaseName: undefined, tags: undefined, live: undefined };
  return { sessionId, state: 'idle', ...aged(idleSince), ...unused };
}

function waitingRow({ request: { name }, since }: Waiter) {
  return { state: 'waiting' as const, ...aged(since), leaseName: name };
}

/** The age in milliseconds, and the start by the monotonic clock, which distinguishes two periods of one state. */
function aged(since: number) {
  return { age: Math.round(performance.now() - since), since };
}

async function replayRow(pools: PoolSet, recording: Recording) {
  const { replayId, sessionId, pool, leaseName, startedAt, state, video } = recording;
  const viewUrl = await replayViewUrl(pools, recording);
  const duration = video?.duration;
  return {
    replayId,
    sessionId,
    pool,
    leaseName,
    startedAt: startedAt.toISOString(),
    state,
    duration,
    viewUrl,
  };
}
