import type { ListedReplay } from '../list-page.js';
import { byId, make, showBadge } from '../../../shared/page/browser/dom.js';
import { duration, fragmentOf, plain } from '../../../shared/page/browser/format.js';
import { RECORDING_STATES, RESULTS } from './recording-states.js';

/** A recording, and its element in the list. */
interface Row {
  readonly element: HTMLElement;
  readonly result: string | undefined;
  /** What the search finds. */
  readonly text: string;
}

/** Words of the search that stand for a result: the name of a test often contains them. */
const RESULT_WORDS: ReadonlySet<string> = new Set(Object.keys(RESULTS));

const replays = JSON.parse(byId('replays-data').textContent) as readonly ListedReplay[];
const rows = replays.map(rowOf);
const search = byId('search', HTMLInputElement);

byId('replays').append(...rows.map(({ element }) => element));
search.addEventListener('input', filter);
filter();

function filter(): void {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = rows.filter((row) => {
    const matches = words.every((word) => matchesWord(row, word));
    row.element.hidden = !matches;
    return matches;
  });
  const all = rows.length === 1 ? '1 replay' : `${rows.length} replays`;
  showBadge(byId('count'), shown.length === rows.length ? all : `${shown.length} of ${all}`, '');
  byId('none').hidden = shown.length > 0;
  byId('none').textContent = rows.length === 0 ? 'There are no replays.' : 'No replay matches.';
}

function matchesWord({ result, text }: Row, word: string): boolean {
  return RESULT_WORDS.has(word) ? result === word : text.includes(word);
}

function rowOf(replay: ListedReplay): Row {
  const { folder, title, facts, failedAt } = replay;
  const { state, pool, service, tags = {}, result } = facts;
  const name = plain(title, 300) || folder;
  const page = `./${folder}/index.html`;
  const pairs = Object.entries(tags).map(([tag, value]) => `${tag}=${value}`);
  const about = [pool, service ?? '', ...pairs].filter(Boolean).map((text) => plain(text));
  const heading = make('h2', {}, make('a', { href: page }, name), badgeOf(facts));
  const line = make('p', {}, ...timesOf(replay), ...about.map((text) => make('span', {}, text)));
  if (failedAt !== undefined) {
    const href = `${page}${fragmentOf(failedAt)}`;
    line.append(make('a', { href, 'aria-label': `Show the failure of ${name}` }, 'Show the failure'));
  }
  const element = make('li', { class: 'panel' }, shotOf(folder, state), make('div', {}, heading, line));
  return { element, result, text: [name, ...about].join('\n').toLowerCase() };
}

/** When a recording started, in the time zone of the reader, and its length. */
function timesOf({ facts: { startedAt }, length }: ListedReplay): readonly HTMLElement[] {
  const start = make('time', { datetime: startedAt }, new Date(startedAt).toLocaleString());
  return length === undefined ? [start] : [start, make('span', {}, duration(length))];
}

function badgeOf({ state, result }: ListedReplay['facts']): HTMLElement {
  const badge = make('span');
  showBadge(badge, ...(result ? RESULTS[result] : RECORDING_STATES[state]));
  return badge;
}

/** The picture of a recording, which only one with a video or pictures has. */
function shotOf(folder: string, state: string): HTMLElement {
  const shot = make('div', { class: 'shot' });
  if (state !== 'ready') return shot;
  const image = make('img', { src: `./${folder}/poster.jpg`, alt: '', loading: 'lazy', decoding: 'async' });
  // The file may be missing.
  image.addEventListener('error', () => image.remove());
  shot.append(image);
  return shot;
}
