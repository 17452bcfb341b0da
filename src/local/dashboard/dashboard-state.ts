import { LEASE_TAG, MARK_TAG } from '../../services/browser-service.js';
import { hasLiveView, liveViewUrl } from '../pages/live-page.js';
import { replayPageUrl } from '../pages/replay-page.js';
import type { ChromiumPool } from '../pool/chromium-pool.js';
import type { EndedLease, Lease, PooledChromium, Waiter } from '../pool/lease.js';
import type { PoolSet } from '../pool/pool-set.js';
import type { Recording } from '../replays/recording.js';
import type { ShownPages } from './shown-pages.js';

/** Recordings on the dashboard. The API lists all of them. */
const MAX_REPLAYS = 100;

/** Ended leases on the dashboard. */
const MAX_ENDED = 50;

/** The content of the dashboard, as its page receives it. */
export type DashboardState = ReturnType<typeof readDashboard>;
export type PoolState = DashboardState['pools'][number];
export type BrowserCard = PoolState['browsers'][number];
export type WaitingRow = PoolState['waiting'][number];
export type EndedRow = DashboardState['ended'][number];
export type ReplayRow = DashboardState['replays'][number];

export function readDashboard(pools: PoolSet, shown: ShownPages) {
  const recordings = pools.recorder.list();
  return {
    pools: [...pools].map((pool) => poolState(pools, pool, shown)),
    ended: pools.history.list.slice(0, MAX_ENDED).map((lease) => endedRow(pools, lease, recordings)),
    replays: recordings
      .slice(-MAX_REPLAYS)
      .toReversed()
      .map((recording) => replayRow(pools, recording)),
  };
}

function poolState(pools: PoolSet, pool: ChromiumPool, shown: ShownPages) {
  const { id, name, size, headless } = pool.settings;
  const { starting, granted, expired } = pool.stats;
  const browsers = pool.browsers.map((browser) => browserCard(pools, pool, browser, shown));
  const waiting = [...pool.waiting].map(waitingRow);
  const totals = { granted, expired };
  return { id, name, size, headless, starting, totals, browsers, waiting, waits: pool.waits };
}

function browserCard(pools: PoolSet, pool: ChromiumPool, browser: PooledChromium, shown: ShownPages) {
  const { sessionId, chromium, idleSince } = browser;
  const lease = pool.lease(sessionId);
  return {
    sessionId,
    page: shown.pageOf(chromium),
    thumbnail: shown.thumbnailOf(chromium)?.number,
    state: lease ? ('leased' as const) : ('idle' as const),
    ...aged(lease?.since ?? idleSince),
    leaseId: lease?.id,
    leaseName: lease?.request.name,
    tags: shownTags(lease?.request.tags),
    connections: lease?.connections ?? 0,
    live: lease && hasLiveView(pools, pool) ? liveLinks(pools, lease) : undefined,
  };
}

/** The tags that people chose: the library's own tags are ids, by which it finds its leases. */
function shownTags(tags: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(tags).filter(([key]) => key !== LEASE_TAG && key !== MARK_TAG));
}

function liveLinks(pools: PoolSet, lease: Lease) {
  return { watchUrl: liveViewUrl(pools, lease, 'watch'), controlUrl: liveViewUrl(pools, lease) };
}

function waitingRow({ request: { name, tags }, since }: Waiter) {
  return { ...aged(since), leaseName: name, tags: shownTags(tags) };
}

/** The age in milliseconds, and the start by the monotonic clock, which distinguishes two periods of one state. */
function aged(since: number) {
  return { age: Math.round(performance.now() - since), since };
}

function endedRow(pools: PoolSet, lease: EndedLease, recordings: readonly Recording[]) {
  const { id, sessionId, pool, request, outcome, endedAt, duration } = lease;
  const own = recordings.filter(({ leaseId }) => leaseId === id);
  return {
    id,
    sessionId,
    pool,
    leaseName: request.name,
    tags: shownTags(request.tags),
    outcome,
    endedAt: endedAt.toISOString(),
    duration,
    replays: own.map((recording) => replayPageUrl(pools, recording)),
  };
}

function replayRow(pools: PoolSet, recording: Recording) {
  const { replayId, sessionId, pool, leaseName, tags, startedAt, state, video } = recording;
  return {
    replayId,
    sessionId,
    pool,
    leaseName,
    tags: shownTags(tags),
    startedAt: startedAt.toISOString(),
    state,
    duration: video?.duration,
    viewUrl: replayPageUrl(pools, recording),
  };
}
