import type { TimelineEntry } from '../../timeline.js';
import { byId, make, reconcile } from '../../../shared/page/browser/dom.js';
import { clock, fragmentOf, plain, seconds, wordsOf } from '../../../shared/page/browser/format.js';
import { ALL_GROUPS, groupOf, GROUPS, hasFailed, labelOf, setColor, type Group } from './kinds.js';
import { lastUntil, nearest } from './moments.js';
import { isFlag, showMarks } from './scrub-marks.js';

/** An event, and its element in the list. */
interface Row {
  readonly entry: TimelineEntry;
  readonly at: number;
  readonly group: Group;
  readonly element: HTMLElement;
  readonly link: HTMLElement;
  /** What the search finds. */
  readonly text: string;
}

/**
 * The list of events, and their marks on the scrub bar. There can be 10,000 events: each has its element once, and a filter hides
 * elements. `content-visibility: auto` would make a search take ten times as long, and move the rows while they are scrolled to.
 */
export class Timeline {
  readonly #onChoose: (at: number) => void;
  readonly #hidden = new Set<Group>();
  readonly #list = byId('entries');
  readonly #search = byId('search', HTMLInputElement);
  /** In the order in which the recording has them. */
  #rows: readonly Row[] = [];
  /** The rows in the order of time. */
  #sorted: readonly Row[] = [];
  #visible: readonly Row[] = [];
  #length: number | undefined;
  #current: Row | undefined;
  #position = 0;

  constructor(onChoose: (at: number) => void) {
    this.#onChoose = onChoose;
    this.#search.addEventListener('input', () => this.#filter());
  }

  /** @param length Of the video, in milliseconds. Without a video there are no marks. */
  show(entries: readonly TimelineEntry[], length: number | undefined): void {
    this.#length = length;
    this.#rows = entries.map((entry, index) => this.#rowOf(entry, this.#rows[index]));
    this.#sorted = this.#rows.toSorted((one, other) => one.at - other.at);
    place(
      this.#list,
      this.#sorted.map(({ element }) => element),
    );
    // The times have one width, so that the texts begin below each other.
    const longest = clock(Math.max(length ?? 0, this.#sorted.at(-1)?.at ?? 0)).length;
    this.#list.style.setProperty('--time', `${longest}ch`);
    this.#filter();
  }

  get isEmpty(): boolean {
    return this.#rows.length === 0;
  }

  /** The moments of the failures, in the order of time. */
  get failures(): readonly TimelineEntry[] {
    return this.#sorted.map(({ entry }) => entry).filter(({ kind }) => kind === 'failed');
  }

  /**
   * Highlights the last event before a time, and scrolls to it.
   *
   * @param isChosen A person chose the time: the list scrolls in any case.
   */
  highlight(at: number, isChosen = false): void {
    this.#position = at;
    const row = this.#rowAt(at);
    if (row === this.#current && !isChosen) return;
    if (row !== this.#current) {
      this.#current?.link.setAttribute('aria-current', 'false');
      row?.link.setAttribute('aria-current', 'true');
      this.#current = row;
    }
    // No scrolling while a person uses the list.
    if (row && (isChosen || !this.#list.matches(':hover, :focus-within'))) this.#reveal(row.element);
  }

  /** Finds the time of the next or the previous event. Times are in milliseconds. */
  nearest(from: number, direction: 1 | -1): number | undefined {
    return nearest(this.#visible, from, direction);
  }

  /** The last event before a time. A link to a mark or a failure shows it, also if a call began in the same millisecond. */
  #rowAt(at: number): Row | undefined {
    const last = lastUntil(this.#visible, at);
    const atOnce = this.#visible.slice(lastUntil(this.#visible, at - 2) + 1, last + 1);
    return atOnce.findLast(({ entry }) => isFlag(entry)) ?? this.#visible[last];
  }

  /** `scrollIntoView` would also scroll the window, and the video out of sight. */
  #reveal(element: HTMLElement): void {
    const { scrollTop, clientHeight } = this.#list;
    const [top, bottom] = [element.offsetTop, element.offsetTop + element.offsetHeight];
    const isInSight = top >= scrollTop && bottom <= scrollTop + clientHeight;
    if (!isInSight) this.#list.scrollTop = top - clientHeight / 3;
  }

  /** Hides the rows that do not match the groups and the search. */
  #filter(): void {
    this.#renderFilters();
    const words = wordsOf(this.#search);
    this.#visible = this.#sorted.filter(({ group, text, element }) => {
      const matches = !this.#hidden.has(group) && words.every((word) => text.includes(word));
      if (element.hidden === matches) element.hidden = !matches;
      return matches;
    });
    this.#explain(words.length > 0);
    showMarks(
      this.#visible.map(({ entry }) => entry),
      this.#length,
      this.#onChoose,
    );
    this.highlight(this.#position);
  }

  #explain(isSearch: boolean): void {
    const [shown, all] = [this.#visible.length, this.#rows.length];
    const none = isSearch ? 'No event matches.' : 'All events are hidden.';
    const empty = byId('no-entries');
    empty.hidden = shown > 0;
    empty.textContent = all === 0 ? 'No events yet.' : none;
    byId('count').textContent = shown === all ? `${all}` : `${shown} of ${all}`;
  }

  /** @param present The row of the same event, as the page showed it before. */
  #rowOf(entry: TimelineEntry, present: Row | undefined): Row {
    if (present && JSON.stringify(present.entry) === JSON.stringify(entry)) return present;
    const link = entry.kind === 'mark' ? markLink(entry) : eventLink(entry);
    // The fragment may be in the address already: then following the link would not seek.
    link.addEventListener('click', () => this.#onChoose(entry.at));
    const element =
      entry.kind === 'mark'
        ? make('li', { class: 'heading' }, make('h3', {}, link))
        : make('li', { class: entry.kind }, link);
    const group = groupOf(entry);
    setColor(element, group);
    present?.element.replaceWith(element);
    return { entry, at: entry.at, group, element, link, text: link.textContent.toLowerCase() };
  }

  #renderFilters(): void {
    const counts = new Map<Group, number>();
    for (const { group } of this.#rows) counts.set(group, (counts.get(group) ?? 0) + 1);
    const groups = ALL_GROUPS.filter((group) => counts.has(group));
    reconcile(byId('filters'), groups, String, (group, present) => {
      const button = present ?? this.#filterButton(group);
      button.setAttribute('aria-pressed', String(!this.#hidden.has(group)));
      button.lastChild!.textContent = `${GROUPS[group].label} ${counts.get(group)}`;
      return button;
    });
  }

  #filterButton(group: Group): HTMLElement {
    const button = make('button', {}, make('i'), '');
    setColor(button, group);
    button.addEventListener('click', () => {
      if (!this.#hidden.delete(group)) this.#hidden.add(group);
      this.#filter();
    });
    return button;
  }
}

/** A link to the moment when a test, a task or a step begins. */
function markLink({ at, text }: TimelineEntry): HTMLElement {
  const what = make('span', { class: 'what' }, plain(text));
  return make('a', { href: fragmentOf(at) }, make('time', {}, clock(at)), ' ', make('i'), what);
}

function eventLink(entry: TimelineEntry): HTMLElement {
  const { at, text, status, took } = entry;
  // The spaces are for screen readers.
  const what = make('span', { class: 'what' }, make('span', { class: 'kind' }, labelOf(entry)), ' ');
  const isCall = entry.kind === 'call' || entry.kind === 'command';
  const result = () => make('span', { class: hasFailed(entry) ? 'status failed' : 'status' }, plain(status!));
  if (status !== undefined && !isCall) what.append(result(), ' ');
  what.append(plain(text));
  if (took !== undefined) what.append(' ', make('span', { class: 'took' }, lengthOf(took)));
  if (status !== undefined && isCall) what.append(' ', result());
  return make('a', { href: fragmentOf(at) }, make('time', {}, clock(at)), ' ', make('i'), what);
}

function lengthOf(took: number): string {
  return took < 1000 ? `${Math.round(took)} ms` : seconds(took);
}

/** Makes elements the children of a parent in this order. An element that stays in its place keeps the focus. */
function place(parent: HTMLElement, elements: readonly HTMLElement[]): void {
  let next = parent.firstElementChild;
  for (const element of elements)
    if (element === next) next = next.nextElementSibling;
    else parent.insertBefore(element, next);
  while (next) {
    const { nextElementSibling } = next;
    next.remove();
    next = nextElementSibling;
  }
}
