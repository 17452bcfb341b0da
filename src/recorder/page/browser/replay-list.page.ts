import type { ListedReplay } from '../list-page.js';
import { byId, make, showBadge, timeOf } from '../../../shared/page/browser/dom.js';
import { duration, fragmentOf, plain, wordsOf } from '../../../shared/page/browser/format.js';
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
/** Adds the word to the search, and removes it. */
const failed = byId('failed');
const failures = rows.filter(({ result }) => result === 'failed').length;

byId('replays').append(...rows.map(({ element }) => element));
search.addEventListener('input', filter);
failed.addEventListener('click', () => {
  const words = wordsOf(search);
  const others = words.filter((word) => word !== 'failed');
  search.value = (words.length > others.length ? others : [...words, 'failed']).join(' ');
  filter();
});
failed.hidden = failures === 0;
failed.textContent = `${failures} failed`;
filter();

function filter(): void {
  const words = wordsOf(search);
  const shown = rows.filter((row) => {
    const matches = words.every((word) => matchesWord(row, word));
    row.element.hidden = !matches;
    return matches;
  });
  const all = rows.length === 1 ? '1 replay' : `${rows.length} replays`;
  showBadge(byId('count'), shown.length === rows.length ? all : `${shown.length} of ${all}`, '');
  failed.setAttribute('aria-pressed', String(words.includes('failed')));
  byId('none').hidden = shown.length > 0;
  byId('none').textContent = rows.length === 0 ? 'There are no replays.' : 'No replay matches.';
}

function matchesWord({ result, text }: Row, word: string): boolean {
  return RESULT_WORDS.has(word) ? result === word : text.includes(word);
}

function rowOf(replay: ListedReplay): Row {
  const { folder, title, facts, failedAt, failed = [] } = replay;
  const { state, pool, service, tags = {}, result } = facts;
  const name = plain(title, 300) || folder;
  const page = `./${folder}/index.html`;
  const pairs = Object.entries(tags).map(([tag, value]) => `${tag}=${value}`);
  const about = [pool, service ?? ''].filter(Boolean).map((text) => make('span', {}, plain(text)));
  const chips = pairs.map((pair) => make('span', { class: 'tag' }, plain(pair)));
  const heading = make('h2', { class: 'line' }, make('a', { href: page }, name), badgeOf(facts));
  const line = make('p', { class: 'line' }, ...timesOf(replay), ...about, ...chips);
  if (failedAt !== undefined) {
    const href = `${page}${fragmentOf(failedAt)}`;
    line.append(make('a', { href, 'aria-label': `Show the failure of ${name}` }, 'Show the failure'));
  }
  const others = failed.map((one) => plain(one)).filter((one) => one !== name);
  if (others.length > 0) line.append(make('span', {}, `Failed: ${others.join(', ')}`));
  const element = make('li', { class: 'panel' }, shotOf(folder, state), make('div', {}, heading, line));
  return {
    element,
    result,
    text: [name, ...others, ...[...about, ...chips].map(({ textContent }) => textContent)]
      .join('\n')
      .toLowerCase(),
  };
}

/** When a recording started, and its length. */
function timesOf({ facts: { startedAt }, length }: ListedReplay): readonly HTMLElement[] {
  const start = timeOf(new Date(startedAt));
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
