import { hasLiveView, liveViewUrl, watchUrl } from '../live/live-view-url.js';
import type {
  BrowserRow,
  DashboardState,
  LiveLinks,
  PoolState,
  ReplayRow,
  WaitingRow,
} from '../pages/messages.js';
import { replayState } from '../pages/replay-state.js';
import type { ChromiumPool } from '../pool/chromium-pool.js';
import type { Lease } from '../pool/lease.js';
import type { PooledChromium } from '../pool/pooled-chromium.js';
import type { PoolSet } from '../pool/pool-set.js';
import type { Waiter } from '../pool/wait-queue.js';
import type { LocalReplay } from '../replays/local-replay.js';
import { replayViewUrl } from '../replays/replay-view-url.js';

/** A list for a person; who needs more asks the interface. */
const MOST_REPLAYS = 100;

/** Reads what the dashboard shows. */
export async function readDashboard(pools: PoolSet): Promise<DashboardState> {
  const latest = [...pools.recorder.list()].slice(-MOST_REPLAYS).reverse();
  return {
    pools: await Promise.all([...pools].map((pool) => poolState(pools, pool))),
    replays: await Promise.all(latest.map((replay) => replayRow(pools, replay))),
  };
}

async function poolState(pools: PoolSet, pool: ChromiumPool): Promise<PoolState> {
  const { id, name, size, headless } = pool.settings;
  const { starting, granted, destroyed, expired } = pool.stats;
  const leased = await Promise.all([...pool.leases].map((lease) => leasedRow(pools, pool, lease)));
  return {
    id,
    name,
    size,
    headless,
    starting,
    totals: { granted, destroyed, expired },
    browsers: [...leased, ...[...pool.idle].map(idleRow)],
    waiting: [...pool.waiting].map(waitingRow),
  };
}

async function leasedRow(pools: PoolSet, pool: ChromiumPool, lease: Lease): Promise<BrowserRow> {
  const { name, tags } = lease.request;
  return {
    sessionId: lease.browser.sessionId,
    state: 'leased',
    ...aged(lease.since),
    connections: lease.connections,
    ...(name !== undefined && { leaseName: name }),
    ...(tags && { tags }),
    ...(hasLiveView(pools, pool) && { live: await liveLinks(pools, lease) }),
  };
}

async function liveLinks(pools: PoolSet, lease: Lease): Promise<LiveLinks> {
  const [watch, control] = [watchUrl(pools, lease), liveViewUrl(pools, lease)];
  return { watchUrl: await watch, controlUrl: await control };
}

function idleRow({ sessionId, idleSince }: PooledChromium): BrowserRow {
  return { sessionId, state: 'idle', ...aged(idleSince), connections: 0 };
}

function waitingRow({ request: { name }, since }: Waiter): WaitingRow {
  return { state: 'waiting', ...aged(since), ...(name !== undefined && { leaseName: name }) };
}

async function replayRow({ tokens, host }: PoolSet, replay: LocalReplay): Promise<ReplayRow> {
  const { replayId, sessionId, pool, leaseName, startedAt, film } = replay;
  return {
    replayId,
    sessionId,
    pool,
    startedAt: startedAt.toISOString(),
    state: replayState(replay),
    ...(leaseName !== undefined && { leaseName }),
    ...(film && { duration: film.duration }),
    viewUrl: await replayViewUrl(host, sessionId, replayId, tokens.signReplay),
  };
}

function aged(since: number): { age: number; since: number } {
  return { age: Math.round(performance.now() - since), since };
}
