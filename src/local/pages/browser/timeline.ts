import type { TimelineEntry } from '../../replays/local-replay.js';
import { byId, make, reconcile } from './dom.js';
import { clock } from './format.js';

type Group = 'pages' | 'input' | 'console' | 'errors' | 'lease';

const GROUPS: Readonly<Record<Group, string>> = {
  pages: 'Pages',
  input: 'Input',
  console: 'Console',
  errors: 'Errors',
  lease: 'Lease',
};

const KINDS: Readonly<Record<TimelineEntry['kind'], readonly [group: Group, label: string]>> = {
  'page-opened': ['pages', 'Page opened'],
  'page-closed': ['pages', 'Page closed'],
  navigation: ['pages', 'Navigation'],
  click: ['input', 'Click'],
  key: ['input', 'Key'],
  console: ['console', 'Console'],
  'page-error': ['errors', 'Page error'],
  'request-failed': ['errors', 'Request failed'],
  connected: ['lease', 'Connected'],
  disconnected: ['lease', 'Disconnected'],
  'recording-ended': ['lease', 'Recording'],
};

/** A film stands where it was sent to up to so many milliseconds. */
const HERE = 1;

/** The list of what happened, and its marks on the scrub bar. */
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

  /** @param length Of the film, in milliseconds; without one there are no marks. */
  show(entries: readonly TimelineEntry[], length: number | undefined): void {
    const grown = entries.length !== this.#entries.length || length !== this.#length;
    if (!grown && this.#list.childElementCount > 0) return;
    this.#entries = entries;
    this.#length = length;
    this.#render();
  }

  /** Highlights the last event before this time, and keeps it in sight. */
  follow(at: number): void {
    const current = this.#visible.findLastIndex((entry) => entry.at <= at + HERE);
    if (current === this.#current) return;
    this.#current = current;
    const rows = [...this.#list.querySelectorAll('button')];
    rows.forEach((row, index) => row.setAttribute('aria-current', String(index === current)));
    // A person who reads the list has it in hand.
    if (!this.#list.matches(':hover, :focus-within')) rows[current]?.scrollIntoView({ block: 'nearest' });
  }

  nearest(from: number, direction: 1 | -1): number | undefined {
    const times = this.#visible.map(({ at }) => at);
    return direction === 1 ? times.find((at) => at > from + HERE) : times.findLast((at) => at < from - HERE);
  }

  get #visible(): readonly TimelineEntry[] {
    return this.#entries.filter(({ kind }) => !this.#hidden.has(KINDS[kind][0]));
  }

  #render(): void {
    this.#current = -1;
    this.#renderFilters();
    const rows = this.#visible.map((entry) => ({ entry, key: `${this.#entries.indexOf(entry)}` }));
    reconcile(
      this.#list,
      rows,
      ({ key }) => key,
      ({ entry }, before) => before ?? this.#row(entry),
    );
    if (rows.length === 0) {
      this.#list.append(
        make('li', { class: 'empty' }, this.#entries.length === 0 ? 'Nothing yet.' : 'All hidden.'),
      );
    }
    const length = this.#length;
    const marks = length ? this.#visible.map((entry) => mark(entry, length)) : [];
    byId('marks').replaceChildren(...marks);
  }

  #row({ at, kind, text }: TimelineEntry): HTMLElement {
    const [group, label] = KINDS[kind];
    const what = make('span', { class: 'what' }, text);
    what.prepend(make('span', { class: 'kind' }, label));
    const row = make('button', { class: group }, make('time', {}, clock(at)), make('i'), what);
    row.addEventListener('click', () => this.#onChoose(at));
    return make('li', {}, row);
  }

  #renderFilters(): void {
    const groups = Object.keys(GROUPS).filter((group) => this.#count(group as Group) > 0) as Group[];
    reconcile(byId('filters'), groups, String, (group, before) => {
      const button = before ?? this.#filter(group);
      button.setAttribute('aria-pressed', String(!this.#hidden.has(group)));
      button.lastChild!.textContent = `${GROUPS[group]} ${this.#count(group)}`;
      return button;
    });
  }

  #filter(group: Group): HTMLElement {
    const button = make('button', { class: group }, make('i'), '');
    button.addEventListener('click', () => {
      if (!this.#hidden.delete(group)) this.#hidden.add(group);
      this.#render();
    });
    return button;
  }

  #count(group: Group): number {
    return this.#entries.filter(({ kind }) => KINDS[kind][0] === group).length;
  }
}

function mark({ at, kind }: TimelineEntry, length: number): HTMLElement {
  const line = make('i', { class: KINDS[kind][0] });
  line.style.left = `${Math.min(100, (100 * at) / length)}%`;
  return line;
}
