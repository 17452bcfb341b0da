import { clock } from '../shared/clock.js';
import { excerpt } from '../shared/redact.js';

/** The kinds of events in a timeline, with the category that enables each of them. */
const CATEGORIES = {
  'page-opened': 'page',
  'page-closed': 'page',
  navigation: 'page',
  'page-error': 'page',
  console: 'console',
  'request-failed': 'network',
  click: 'interaction',
  key: 'interaction',
  connected: 'connection',
  disconnected: 'connection',
  dialog: 'page',
  download: 'page',
  call: 'call',
  command: 'call',
  // In every timeline.
  mark: undefined,
  failed: undefined,
  'attempt-failed': undefined,
  'recording-ended': undefined,
} as const;

type Category = Exclude<(typeof CATEGORIES)[keyof typeof CATEGORIES], undefined>;

/** An event during a recording. */
export interface TimelineEntry {
  /** Milliseconds since the recording started. */
  readonly at: number;
  readonly kind: keyof typeof CATEGORIES;
  /** One line, such as a URL or the clicked element. */
  readonly text: string;
  /** How a request ended: HTTP status and its text, or Chromium's name of a network error. Of a failure: the test or task. */
  readonly status?: string;
  /** Milliseconds that a call took. Missing for one that has not ended, and for other kinds. */
  readonly took?: number;
}

/** Further entries of a page are dropped, so that a page with endless console output does not fill the memory. */
const MOST_OF_PAGES = 8_000;

/** Entries of all kinds. Marks, failures and the end are always added. */
const MOST = 12_000;

/** Characters of an entry. */
const MAX_TEXT = 300;

/** The events of a recording. */
export class Timeline {
  readonly entries: TimelineEntry[] = [];
  /** Adds nothing but what is in every timeline. */
  isPaused = false;
  readonly #categories: ReadonlySet<string> | undefined;
  readonly #timeOf: (moment: number) => number;
  readonly #onChange: (entry: TimelineEntry, index?: number) => void;

  /**
   * @param categories The enabled categories: `page`, `interaction`, `console`, `network`, `connection`, `call`. Default: all.
   * @param timeOf Returns the whole milliseconds of a moment (`clock.now()`) since the recording started.
   * @param onChange Called with each new entry, and with the index of one that changes.
   */
  constructor(
    categories: readonly string[] | undefined,
    timeOf: (moment: number) => number,
    onChange: (entry: TimelineEntry, index?: number) => void = () => {},
  ) {
    this.#categories = categories && new Set(categories);
    this.#timeOf = timeOf;
    this.#onChange = onChange;
  }

  includes(category: Category): boolean {
    return this.#categories?.has(category) ?? true;
  }

  /**
   * Adds an event if its category is enabled. Redacts secrets in the text.
   *
   * @param moment When it happened. Default: now.
   * @returns The index of the entry; undefined if it was dropped.
   */
  add(kind: TimelineEntry['kind'], text: string, status?: string, moment = clock.now()): number | undefined {
    const category = CATEGORIES[kind];
    const most = category === 'call' ? MOST : MOST_OF_PAGES;
    if (category && (this.isPaused || !this.includes(category) || this.entries.length >= most))
      return undefined;
    const entry = { at: this.#timeOf(moment), kind, text: excerpt(text, MAX_TEXT) };
    const added = status === undefined ? entry : { ...entry, status: excerpt(status, MAX_TEXT) };
    this.#onChange(added);
    return this.entries.push(added) - 1;
  }

  /** A call has ended. @param index What `add` returned. @param status Why it failed. */
  end(index: number, status?: string): void {
    const { at = 0 } = this.entries[index] ?? {};
    const took = Math.max(0, this.#timeOf(clock.now()) - at);
    this.#change(index, { took, ...(status !== undefined && { status: excerpt(status, MAX_TEXT) }) });
  }

  /** An attempt has failed, and there is no other one. @param title Of the test or the task. */
  count(index: number, title?: string): void {
    this.#change(index, { kind: 'failed', ...(title && { status: excerpt(title, MAX_TEXT) }) });
  }

  #change(index: number, change: Partial<TimelineEntry>): void {
    const entry = this.entries[index];
    if (!entry) return;
    const changed = { ...entry, ...change };
    this.entries[index] = changed;
    this.#onChange(changed, index);
  }
}

/** Reads an entry from a file. */
export function entryOf({
  at,
  kind,
  text,
  status,
  took,
}: Record<string, unknown>): TimelineEntry | undefined {
  if (typeof at !== 'number' || typeof text !== 'string') return undefined;
  if (typeof kind !== 'string' || !Object.hasOwn(CATEGORIES, kind)) return undefined;
  return {
    at,
    kind: kind as TimelineEntry['kind'],
    text,
    ...(typeof status === 'string' && { status }),
    ...(typeof took === 'number' && { took }),
  };
}
