import { MARK_TAG } from '../../services/browser-service.js';
import { readMark } from '../../services/lease-mark.js';
import type { Recording } from '../../recorder/recording.js';
import type { FeatureContext } from '../feature.js';
import type { ServedPool } from '../pool/served-pool.js';
import type { EndedLease, ServedBrowser } from '../pool/served-lease.js';
import { shownTags } from '../replays/lease-recordings.js';
import { replayPageUrl } from '../replays/replay-pages.js';
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

export function readDashboard(context: FeatureContext, shown: ShownPages) {
  const { host, pools } = context;
  const recordings = context.recordings.list();
  return {
    pools: [...pools].map((pool) => poolState(context, pool, shown)),
    ended: pools.history.list.slice(0, MAX_ENDED).map((lease) => endedRow(host, lease, recordings)),
    replays: recordings
      .slice(-MAX_REPLAYS)
      .toReversed()
      .map((recording) => replayRow(host, recording)),
  };
}

function poolState(context: FeatureContext, pool: ServedPool, shown: ShownPages) {
  const { id, name, size, headless } = pool.settings;
  const { starting, granted, expired } = pool.stats;
  const browsers = pool.browsers.map((browser) => browserCard(context, pool, browser, shown));
  const waiting = [...pool.waiting].map(({ request: { name, tags }, since }) => ({
    ...aged(since),
    leaseName: name,
    tags: shownTags(tags),
  }));
  const totals = { granted, expired };
  return { id, name, size, headless, starting, totals, browsers, waiting, waits: pool.waits };
}

function browserCard(
  { liveLinks }: FeatureContext,
  pool: ServedPool,
  browser: ServedBrowser,
  shown: ShownPages,
) {
  const { sessionId, process, idleSince } = browser;
  const { chromium } = process;
  const lease = pool.lease(sessionId);
  return {
    sessionId,
    page: chromium && shown.pageOf(chromium),
    thumbnail: chromium && shown.thumbnailOf(chromium)?.number,
    state: lease ? ('leased' as const) : ('idle' as const),
    ...aged(lease?.since ?? idleSince),
    leaseId: lease?.id,
    lifetime: readMark(lease?.request.tags?.[MARK_TAG])?.lifetime,
    leaseName: lease?.request.name,
    tags: shownTags(lease?.request.tags),
    connections: lease?.connections ?? 0,
    live: lease && liveLinks(pool, lease),
  };
}

/** The age in milliseconds, and the start by the monotonic clock, which distinguishes two periods of one state. */
function aged(since: number) {
  return { age: Math.round(performance.now() - since), since };
}

function endedRow(host: string, lease: EndedLease, recordings: readonly Recording[]) {
  const { id, sessionId, pool, request, outcome, endedAt, duration } = lease;
  const own = recordings.filter(({ session }) => session.leaseId === id);
  return {
    id,
    sessionId,
    pool,
    leaseName: request.name,
    tags: shownTags(request.tags),
    outcome,
    endedAt: endedAt.toISOString(),
    duration,
    replays: own.map((recording) => replayPageUrl(host, recording)),
  };
}

function replayRow(host: string, recording: Recording) {
  const { replayId, session, startedAt, state, video } = recording;
  const { sessionId, pool, leaseName, tags } = session;
  return {
    replayId,
    sessionId,
    pool,
    leaseName,
    tags: shownTags(tags),
    startedAt: startedAt.toISOString(),
    state,
    duration: video?.duration,
    viewUrl: replayPageUrl(host, recording),
  };
}
