import type { DashboardState, PoolState } from '../dashboard-state.js';
import { updateAges } from './dashboard-card.js';
import { renderPool } from './dashboard-pool.js';
import { endedRow, replayRow } from './dashboard-rows.js';
import { byId, make, reconcile, remake, showBadge } from '../../../shared/page/browser/dom.js';

/** Milliseconds until a lost connection is opened again. */
const RECONNECT_DELAY = 2_000;

const filter = byId('filter', HTMLInputElement);
let state: DashboardState | undefined;

connect();
setInterval(updateAges, 1_000);
filter.addEventListener('input', show);

function connect(): void {
  const socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/${location.search}`);
  socket.addEventListener('open', () => showBadge(byId('state'), 'Live', 'good pulse'));
  socket.addEventListener('message', ({ data }: MessageEvent<string>) => {
    state = JSON.parse(data) as DashboardState;
    show();
  });
  socket.addEventListener('close', () => {
    showBadge(byId('state'), 'Not connected', 'bad');
    setTimeout(connect, RECONNECT_DELAY);
  });
}

function show(): void {
  if (!state) return;
  const { pools, ended, replays } = state;
  showSums(pools);
  const isWanted = matches(filter.value.trim().toLowerCase());
  reconcile(
    byId('pools'),
    pools,
    ({ id }) => id,
    (pool, present) => renderPool(pool, isWanted, present),
  );
  showRows('ended', ended.filter(isWanted), ({ id }) => id, endedRow);
  showRows('replays', replays.filter(isWanted), ({ replayId }) => replayId, replayRow);
}

/** What a person can filter by. */
interface Named {
  readonly leaseName?: string | undefined;
  readonly tags?: Readonly<Record<string, string>> | undefined;
}

function matches(wanted: string): (row: Named) => boolean {
  return ({ leaseName = '', tags = {} }) => {
    const texts = [leaseName, ...Object.entries(tags).map((pair) => pair.join('='))];
    return texts.some((text) => text.toLowerCase().includes(wanted));
  };
}

/** Shows the rows of a list, or the sentence below it that the list is empty. */
function showRows<Row extends object>(
  id: string,
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  makeRow: (row: Row) => HTMLElement,
): void {
  reconcile(byId(id), rows, keyOf, (row, present) => remake(present, row, () => makeRow(row)));
  byId(id).hidden = rows.length === 0;
  byId(`no-${id}`).hidden = rows.length > 0;
}

function showSums(pools: readonly PoolState[]): void {
  const browsers = pools.flatMap((pool) => pool.browsers);
  const leased = browsers.filter(({ state }) => state === 'leased').length;
  const total = (count: (pool: PoolState) => number): number =>
    pools.reduce((sum, pool) => sum + count(pool), 0);
  const granted = total(({ totals }) => totals.granted);
  const sums = {
    leased,
    idle: browsers.length - leased,
    starting: total(({ starting }) => starting),
    waiting: total(({ waiting }) => waiting.length),
    [granted === 1 ? 'lease granted' : 'leases granted']: granted,
  };
  const items = Object.entries(sums).map(([term, count]) =>
    make('div', {}, make('dt', {}, term), make('dd', {}, String(count))),
  );
  byId('sums').replaceChildren(...items);
  document.title = `${leased} of ${browsers.length} leased · Browser pools`;
}
