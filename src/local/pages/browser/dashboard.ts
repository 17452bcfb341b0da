import type {
  BrowserRow,
  DashboardState,
  PoolState,
  ReplayRow,
  WaitingRow,
} from '../../dashboard/dashboard-feed.js';
import { byId, make, reconcile, remake, showBadge } from './dom.js';
import { clock, duration, RECORDING_STATES, short } from './format.js';

/** Milliseconds until a lost connection is opened again. */
const RECONNECT_DELAY = 2_000;

connect();
setInterval(() => document.querySelectorAll<HTMLElement>('[data-since]').forEach(updateAge), 1_000);

function connect(): void {
  const socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/${location.search}`);
  socket.addEventListener('open', () => showBadge(byId('state'), 'Live', 'good pulse'));
  socket.addEventListener('message', ({ data }: MessageEvent<string>) =>
    show(JSON.parse(data) as DashboardState),
  );
  socket.addEventListener('close', () => {
    showBadge(byId('state'), 'Not connected', 'bad');
    setTimeout(connect, RECONNECT_DELAY);
  });
}

function show({ pools, replays }: DashboardState): void {
  showSums(pools);
  reconcile(byId('pools'), pools, ({ id }) => id, renderPool);
  reconcile(byId('replays'), replays, ({ replayId }) => replayId, renderReplay);
  byId('replay-table').hidden = replays.length === 0;
  byId('no-replays').hidden = replays.length > 0;
}

function showSums(pools: readonly PoolState[]): void {
  const browsers = pools.flatMap((pool) => pool.browsers);
  const leased = browsers.filter(({ state }) => state === 'leased').length;
  const total = (count: (pool: PoolState) => number): number =>
    pools.reduce((sum, pool) => sum + count(pool), 0);
  const sums = {
    leased,
    idle: browsers.length - leased,
    starting: total(({ starting }) => starting),
    waiting: total(({ waiting }) => waiting.length),
    'leases granted': total(({ totals }) => totals.granted),
  };
  const items = Object.entries(sums).map(([term, count]) =>
    make('div', {}, make('dt', {}, term), make('dd', {}, String(count))),
  );
  byId('sums').replaceChildren(...items);
  document.title = `${leased} of ${browsers.length} leased · Browser pools`;
}

/** Renders a pool: a tile for each browser, and a row for each browser and each waiting request. */
function renderPool(pool: PoolState, present: HTMLElement | undefined): HTMLElement {
  const panel = present ?? makePanel(pool);
  panel.querySelector('.counts')!.textContent = countsOf(pool);
  panel.querySelector('.tiles')!.replaceChildren(...tilesOf(pool));
  reconcile(panel.querySelector('tbody')!, [...pool.browsers, ...pool.waiting], keyOf, renderRow);
  return panel;
}

type Row = BrowserRow | WaitingRow;

const keyOf = (row: Row): string => (row.state === 'waiting' ? `waiting ${row.since}` : row.sessionId);

function renderRow(row: Row, present: HTMLElement | undefined): HTMLElement {
  // Links with a new jwt open the same view.
  const facts = { ...row, age: undefined, live: undefined };
  return remake(present, facts, () => (row.state === 'waiting' ? waitingRow(row) : browserRow(row)));
}

const COLUMNS: readonly (readonly [title: string, style: string])[] = [
  ['State', 'state'],
  ['For', 'for'],
  ['Lease', 'lease'],
  ['Tags', 'tags'],
  ['Session', 'session'],
  ['Connections', 'connections'],
  ['Live view', 'view end'],
];

function makePanel({ name, headless }: PoolState): HTMLElement {
  const id = `pool-${name}`;
  const title = make('h2', { id }, name);
  const kind = make('span', { class: 'dim' }, headless ? 'headless' : 'with windows');
  const tiles = make('div', { class: 'tiles', 'aria-hidden': 'true' });
  const header = make('header', {}, title, kind, make('span', { class: 'counts' }), tiles);
  const heads = COLUMNS.map(([column, style]) => make('th', { class: style }, column));
  const table = make('table', {}, make('thead', {}, make('tr', {}, ...heads)), make('tbody'));
  const scroll = { class: 'scroll', tabindex: '0', role: 'region', 'aria-labelledby': id };
  return make('section', { class: 'panel pool', 'aria-labelledby': id }, header, make('div', scroll, table));
}

function countsOf({ size, browsers, starting, waiting, totals }: PoolState): string {
  const leased = browsers.filter(({ state }) => state === 'leased').length;
  const parts = [
    `${leased} of ${size} leased`,
    starting > 0 ? `${starting} starting` : '',
    waiting.length > 0 ? `${waiting.length} waiting` : '',
    `${totals.granted} ${totals.granted === 1 ? 'lease' : 'leases'} so far`,
    totals.expired > 0 ? `${totals.expired} expired` : '',
  ];
  return parts.filter(Boolean).join(' · ');
}

function tilesOf({ browsers, starting, waiting }: PoolState): HTMLElement[] {
  const kinds = [
    ...browsers.map(({ state }) => state),
    ...Array.from({ length: starting }, () => 'starting'),
    ...waiting.map(() => 'waiting'),
  ];
  return kinds.map((kind) => make('i', { class: kind }));
}

function browserRow(browser: BrowserRow): HTMLElement {
  const { sessionId, state, age, leaseName = '', tags = {}, connections } = browser;
  const badge = make('span', { class: state === 'leased' ? 'badge live' : 'badge good' }, state);
  const chips = Object.entries(tags).map((pair) => make('span', { class: 'tag' }, pair.join('=')));
  const session = make('code', { title: sessionId }, short(sessionId));
  const count = connections === 0 ? '' : String(connections);
  return makeRow(state, [badge], ageCell(age), [leaseName], chips, [session], [count], liveLinks(browser));
}

function liveLinks({ live, leaseName, sessionId }: BrowserRow): Node[] {
  if (!live) return [];
  const name = leaseName ?? short(sessionId);
  return [
    newTabLink('Watch', `Watch ${name}`, live.watchUrl),
    newTabLink('Control', `Control ${name}`, live.controlUrl),
  ];
}

function newTabLink(text: string, label: string, href: string): HTMLElement {
  return make('a', { href, target: '_blank', rel: 'noreferrer', 'aria-label': label }, text);
}

function waitingRow({ leaseName = '', age }: WaitingRow): HTMLElement {
  const badge = make('span', { class: 'badge warn' }, 'waiting');
  return makeRow('waiting', [badge], ageCell(age), [leaseName], [], [], [], []);
}

function ageCell(age: number): HTMLElement[] {
  const cell = make('span', { class: 'number', 'data-since': String(performance.now() - age) });
  updateAge(cell);
  return [cell];
}

function updateAge(cell: HTMLElement): void {
  const text = duration(performance.now() - Number(cell.dataset['since']));
  if (cell.textContent !== text) cell.textContent = text;
}

function makeRow(state: string, ...cells: readonly (readonly (Node | string)[])[]): HTMLElement {
  const columns = cells.map((cell, index) => make('td', { class: COLUMNS[index]![1] }, ...cell));
  return make('tr', { class: state }, ...columns);
}

function renderReplay(row: ReplayRow, present: HTMLElement | undefined): HTMLElement {
  return remake(present, { ...row, viewUrl: undefined }, () => replayRow(row));
}

function replayRow(row: ReplayRow): HTMLElement {
  const { state, leaseName, sessionId, pool, startedAt, duration: length, viewUrl } = row;
  const [text, kind] = RECORDING_STATES[state];
  const name = leaseName ?? `session ${short(sessionId)}`;
  const cells: readonly (Node | string)[] = [
    make('span', { class: `badge ${kind}` }, text),
    leaseName ?? '',
    pool,
    make('code', { title: sessionId }, short(sessionId)),
    new Date(startedAt).toLocaleTimeString(),
    length === undefined ? '' : clock(length),
    newTabLink('Open', `Open the replay of ${name}`, viewUrl),
  ];
  const columns = cells.map((cell, index) => make('td', index > 4 ? { class: 'end number' } : {}, cell));
  return make('tr', {}, ...columns);
}
