import type { TimelineEntry } from '../../timeline.js';
import { byId, make, reconcile } from '../../../shared/page/browser/dom.js';
import { clock, fragmentOf } from '../../../shared/page/browser/format.js';

type Group = keyof typeof GROUPS;

/** The groups of events that a person can hide. */
const GROUPS = {
  pages: { label: 'Pages', color: 'light-dark(#3b5bdb, #91a7ff)' },
  input: { label: 'Input', color: 'light-dark(#0f8a6d, #4fd1b0)' },
  console: { label: 'Console', color: '#7a8496' },
  errors: { label: 'Errors', color: 'light-dark(#d6333f, #ff7b7b)' },
  lease: { label: 'Lease', color: '#9c5bd6' },
} as const;

/** How each kind of event is shown: its group, which has the colour, and the label before its text. */
const KINDS: Readonly<Record<TimelineEntry['kind'], { group: Group; label: string }>> = {
  'page-opened': { group: 'pages', label: 'Page opened' },
  'page-closed': { group: 'pages', label: 'Page closed' },
  navigation: { group: 'pages', label: 'Navigation' },
  click: { group: 'input', label: 'Click' },
  key: { group: 'input', label: 'Typing in' },
  console: { group: 'console', label: 'Console' },
  'page-error': { group: 'errors', label: 'Page error' },
  'request-failed': { group: 'errors', label: 'Request failed' },
  connected: { group: 'lease', label: 'Connected' },
  disconnected: { group: 'lease', label: 'Disconnected' },
  dialog: { group: 'pages', label: 'Dialog' },
  download: { group: 'pages', label: 'Download' },
  call: { group: 'lease', label: 'Call' },
  command: { group: 'lease', label: 'Command' },
  mark: { group: 'lease', label: 'Begins' },
  failed: { group: 'errors', label: 'Failed' },
  'recording-ended': { group: 'lease', label: 'Recording ended' },
};

/** A navigation to an error page is an error, and no ordinary page. */
function groupOf({ kind, status }: TimelineEntry): Group {
  return isFailure(status) ? 'errors' : KINDS[kind].group;
}

function isFailure(status: string | undefined): boolean {
  return status !== undefined && !/^[123]/.test(status);
}

/** After a seek, the position of a video is exact to one millisecond. */
const TOLERANCE = 1;

/** The list of events, and their marks on the scrub bar. */
export class Timeline {
  readonly #onChoose: (at: number) => void;
  readonly #hidden = new Set<Group>();
  readonly #list = byId('entries');
  #entries: readonly TimelineEntry[] = [];
  #length: number | undefined;
  #current = -1;

  constructor(onChoose: (at: number) => void) {
    this.#onChoose = onChoose;
  }

  /** @param length Of the video, in milliseconds. Without a video there are no marks. */
  show(entries: readonly TimelineEntry[], length: number | undefined): void {
    const changed = entries.length !== this.#entries.length || length !== this.#length;
    if (!changed && this.#list.childElementCount > 0) return;
    this.#entries = entries;
    this.#length = length;
    this.#render();
  }

  /** Highlights the last event before a time, and scrolls to it. */
  highlight(at: number): void {
    const current = this.#visible.findLastIndex((entry) => entry.at <= at + TOLERANCE);
    if (current === this.#current) return;
    this.#current = current;
    const rows = [...this.#list.querySelectorAll('a')];
    rows.forEach((row, index) => row.setAttribute('aria-current', String(index === current)));
    // No scrolling while a person uses the list.
    if (!this.#list.matches(':hover, :focus-within')) this.#reveal(rows[current]);
  }

  /** `scrollIntoView` would also scroll the window, and the video out of sight. */
  #reveal(row: HTMLElement | undefined): void {
    if (!row) return;
    const { scrollTop, clientHeight } = this.#list;
    const [top, bottom] = [row.offsetTop, row.offsetTop + row.offsetHeight];
    if (top < scrollTop) this.#list.scrollTop = top;
    else if (bottom > scrollTop + clientHeight) this.#list.scrollTop = bottom - clientHeight;
  }

  /** Finds the time of the next or the previous event. Times are in milliseconds. */
  nearest(from: number, direction: 1 | -1): number | undefined {
    const times = this.#visible.map(({ at }) => at);
    return direction === 1
      ? times.find((at) => at > from + TOLERANCE)
      : times.findLast((at) => at < from - TOLERANCE);
  }

  get #visible(): readonly TimelineEntry[] {
    return this.#entries.filter((entry) => !this.#hidden.has(groupOf(entry)));
  }

  #render(): void {
    this.#current = -1;
    this.#renderFilters();
    const rows = this.#visible;
    const keyOf = (entry: TimelineEntry) => String(this.#entries.indexOf(entry));
    reconcile(this.#list, rows, keyOf, (entry, present) => present ?? this.#row(entry));
    if (rows.length === 0) {
      const text = this.#entries.length === 0 ? 'No events yet.' : 'All events are hidden.';
      this.#list.append(make('li', { class: 'empty' }, text));
    }
    const length = this.#length;
    byId('marks').replaceChildren(...(length ? rows.map((entry) => mark(entry, length)) : []));
  }

  /** A link to the moment of an event. */
  #row(entry: TimelineEntry): HTMLElement {
    const { at, kind, text, status } = entry;
    // The spaces are for screen readers.
    const what = make('span', { class: 'what' }, make('span', { class: 'kind' }, KINDS[kind].label), ' ');
    if (status)
      what.append(make('span', { class: isFailure(status) ? 'status failed' : 'status' }, status), ' ');
    what.append(text);
    const row = make('a', { href: fragmentOf(at) }, make('time', {}, clock(at)), ' ', make('i'), what);
    setColor(row, groupOf(entry));
    // The fragment may be in the address already: then following the link would not seek.
    row.addEventListener('click', () => this.#onChoose(at));
    return make('li', {}, row);
  }

  #renderFilters(): void {
    const groups = (Object.keys(GROUPS) as Group[]).filter((group) => this.#count(group) > 0);
    reconcile(byId('filters'), groups, String, (group, present) => {
      const button = present ?? this.#filter(group);
      button.setAttribute('aria-pressed', String(!this.#hidden.has(group)));
      button.lastChild!.textContent = `${GROUPS[group].label} ${this.#count(group)}`;
      return button;
    });
  }

  #filter(group: Group): HTMLElement {
    const button = make('button', {}, make('i'), '');
    setColor(button, group);
    button.addEventListener('click', () => {
      if (!this.#hidden.delete(group)) this.#hidden.add(group);
      this.#render();
    });
    return button;
  }

  #count(group: Group): number {
    return this.#entries.filter((entry) => groupOf(entry) === group).length;
  }
}

function mark(entry: TimelineEntry, length: number): HTMLElement {
  const line = make('i');
  line.style.left = `${Math.min(100, (100 * entry.at) / length)}%`;
  setColor(line, groupOf(entry));
  return line;
}

function setColor(element: HTMLElement, group: Group): void {
  element.style.setProperty('--mark', GROUPS[group].color);
}
