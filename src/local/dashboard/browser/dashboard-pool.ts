import type { PoolState, WaitingRow } from '../dashboard-state.js';
import { ageOf, nameAndTags, renderCard } from './dashboard-card.js';
import { make, reconcile, remake } from '../../../shared/page/browser/dom.js';
import { seconds } from '../../../shared/page/browser/format.js';

/** What the filter compares. */
type IsWanted = (row: Pick<WaitingRow, 'leaseName' | 'tags'>) => boolean;

/** Renders a pool: its counts, the history of its waiting times, and a card for each browser and waiting request. */
export function renderPool(
  pool: PoolState,
  isWanted: IsWanted,
  present: HTMLElement | undefined,
): HTMLElement {
  const panel = present ?? makePanel(pool);
  const part = (name: string): HTMLElement => panel.querySelector(`.${name}`)!;
  part('counts').textContent = countsOf(pool);
  part('tiles').replaceChildren(...tilesOf(pool));
  showWaits(part('waits'), pool.waits);
  const browsers = pool.browsers.filter(isWanted);
  const waiting = pool.waiting.filter(isWanted);
  reconcile(part('cards'), browsers, ({ sessionId }) => sessionId, renderCard);
  reconcile(part('queue'), waiting, ({ since }) => String(since), renderWaiting);
  part('empty').hidden = browsers.length + waiting.length > 0;
  return panel;
}

function makePanel({ name, headless }: PoolState): HTMLElement {
  const id = `pool-${name}`;
  const title = make('h2', { id }, name);
  const kind = make('span', { class: 'dim' }, headless ? 'headless' : 'with windows');
  const tiles = make('div', { class: 'tiles', 'aria-hidden': 'true' });
  const header = make('header', {}, title, kind, make('span', { class: 'counts' }), tiles);
  const waits = make(
    'figure',
    { class: 'waits' },
    make('div', { class: 'bars', 'aria-hidden': 'true' }),
    make('figcaption', { class: 'small' }),
  );
  return make(
    'section',
    { class: 'panel pool', 'aria-labelledby': id },
    header,
    waits,
    make('ul', { class: 'queue rows', 'aria-label': `Waiting requests of ${name}` }),
    make('ul', { class: 'cards', 'aria-label': `Browsers of ${name}` }),
    make('p', { class: 'empty' }, 'No browser and no request of this pool matches.'),
  );
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

/** Milliseconds of a wait that is too short to notice. */
const NO_WAIT = 100;

/** Shows the longest wait in each ten seconds as a bar; nothing if no request waited. */
function showWaits(figure: HTMLElement, waits: readonly number[]): void {
  const longest = Math.max(...waits);
  figure.hidden = longest < NO_WAIT;
  if (figure.hidden) return;
  const [bars, caption] = figure.children as unknown as [HTMLElement, HTMLElement];
  const heights = waits.map((wait) => Math.ceil((100 * wait) / longest));
  bars.replaceChildren(
    ...heights.map((height) => {
      const bar = make('i');
      bar.style.height = `${height}%`;
      return bar;
    }),
  );
  caption.textContent = `Waiting time in the last 10 minutes: at most ${seconds(longest)}, now ${seconds(waits.at(-1)!)}.`;
}

function renderWaiting(row: WaitingRow, present: HTMLElement | undefined): HTMLElement {
  return remake(present, { ...row, age: undefined }, () => {
    const badge = make('span', { class: 'badge warn' }, 'waiting');
    return make('li', {}, badge, make('span', {}, 'for ', ageOf(row.age)), ...nameAndTags(row));
  });
}
