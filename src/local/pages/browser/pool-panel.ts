import type { BrowserRow, PoolState, WaitingRow } from '../messages.js';
import { showAge } from './ages.js';
import { make, reconcile, remake } from './dom.js';
import { short } from './format.js';

/** One pool: a tile for each browser, and a row for each browser and each request that waits. */
export function renderPool(pool: PoolState, before: HTMLElement | undefined): HTMLElement {
  const panel = before ?? newPanel(pool);
  const [header, scroll] = panel.children as unknown as [HTMLElement, HTMLElement];
  header.querySelector('.counts')!.textContent = counts(pool);
  header.querySelector('.tiles')!.replaceChildren(...tiles(pool));
  const rows: Row[] = [...pool.browsers, ...pool.waiting];
  reconcile(scroll.querySelector('tbody')!, rows, keyOf, renderRow);
  return panel;
}

type Row = BrowserRow | WaitingRow;

const keyOf = (row: Row): string => (row.state === 'waiting' ? `waiting ${row.since}` : row.sessionId);

function renderRow(row: Row, before: HTMLElement | undefined): HTMLElement {
  const facts = { ...row, age: undefined, live: undefined };
  return remake(before, facts, () => (row.state === 'waiting' ? waitingRow(row) : browserRow(row)));
}

/** Each with its class. */
const COLUMNS: readonly (readonly [name: string, kind: string])[] = [
  ['State', 'state'],
  ['For', 'for'],
  ['Lease', 'lease'],
  ['Tags', 'tags'],
  ['Session', 'session'],
  ['Connections', 'connections'],
  ['Live view', 'view end'],
];

function newPanel({ name, headless }: PoolState): HTMLElement {
  const id = `pool-${name}`;
  const title = make('h2', { id }, name);
  const kind = make('span', { class: 'dim' }, headless ? 'headless' : 'with windows');
  const tiles = make('div', { class: 'tiles', 'aria-hidden': 'true' });
  const header = make('header', {}, title, kind, make('span', { class: 'counts' }), tiles);
  const heads = COLUMNS.map(([column, kind]) => make('th', { class: kind }, column));
  const table = make('table', {}, make('thead', {}, make('tr', {}, ...heads)), make('tbody'));
  const scroll = make(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-labelledby': id },
    table,
  );
  return make('section', { class: 'panel pool', 'aria-labelledby': id }, header, scroll);
}

function counts({ size, browsers, starting, waiting, totals }: PoolState): string {
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

function tiles({ browsers, starting, waiting }: PoolState): HTMLElement[] {
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
  return row(state, [badge], ageCell(age), [leaseName], chips, [session], [count], liveLinks(browser));
}

function liveLinks({ live, leaseName, sessionId }: BrowserRow): Node[] {
  if (!live) return [];
  const name = leaseName ?? short(sessionId);
  return [liveLink('Watch', name, live.watchUrl), liveLink('Control', name, live.controlUrl)];
}

function liveLink(what: string, name: string, href: string): HTMLElement {
  return make('a', { href, target: '_blank', rel: 'noreferrer', 'aria-label': `${what} ${name}` }, what);
}

function waitingRow({ leaseName = '', age }: WaitingRow): HTMLElement {
  const badge = make('span', { class: 'badge warn' }, 'waiting');
  return row('waiting', [badge], ageCell(age), [leaseName], [], [], [], []);
}

function ageCell(age: number): HTMLElement[] {
  const text = make('span', { class: 'number' });
  showAge(text, age);
  return [text];
}

function row(state: string, ...cells: readonly (readonly (Node | string)[])[]): HTMLElement {
  const columns = cells.map((cell, index) => make('td', { class: COLUMNS[index]![1] }, ...cell));
  return make('tr', { class: state }, ...columns);
}
