import type { DashboardState } from '../messages.js';
import { byId, make, reconcile, showBadge } from './dom.js';
import { tickAges } from './ages.js';
import { renderPool } from './pool-panel.js';
import { renderReplay } from './replay-row.js';

/** How long to wait before a lost connection is tried again, in milliseconds. */
const RETRY = 2_000;

connect();
tickAges();

function connect(): void {
  const socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/${location.search}`);
  socket.addEventListener('open', () => showBadge(byId('state'), 'Live', 'good pulse'));
  socket.addEventListener('message', ({ data }: MessageEvent<string>) =>
    show(JSON.parse(data) as DashboardState),
  );
  socket.addEventListener('close', () => {
    showBadge(byId('state'), 'Not connected', 'bad');
    setTimeout(connect, RETRY);
  });
}

function show({ pools, replays }: DashboardState): void {
  showSums(pools);
  reconcile(byId('pools'), pools, ({ id }) => id, renderPool);
  reconcile(byId('replays'), replays, ({ replayId }) => replayId, renderReplay);
  byId('replay-table').hidden = replays.length === 0;
  byId('no-replays').hidden = replays.length > 0;
}

function showSums(pools: DashboardState['pools']): void {
  const browsers = pools.flatMap((pool) => pool.browsers);
  const leased = browsers.filter(({ state }) => state === 'leased').length;
  const total = (count: (pool: DashboardState['pools'][number]) => number): number =>
    pools.reduce((sum, pool) => sum + count(pool), 0);
  const sums: readonly (readonly [string, number])[] = [
    ['leased', leased],
    ['idle', browsers.length - leased],
    ['starting', total(({ starting }) => starting)],
    ['waiting', total(({ waiting }) => waiting.length)],
    ['leases granted', total(({ totals }) => totals.granted)],
  ];
  const items = sums.map(([term, count]) =>
    make('div', {}, make('dt', {}, term), make('dd', {}, String(count))),
  );
  byId('sums').replaceChildren(...items);
  document.title = `${leased} of ${browsers.length} leased · Browser pools`;
}
