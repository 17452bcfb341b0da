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
  // In every timeline.
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
  /** How a request ended: HTTP status and its text, or Chromium's name of a network error. */
  readonly status?: string;
}

/** Further entries are dropped, so that a page with endless console output does not fill the memory. */
const MAX_ENTRIES = 2_000;

/** Characters of an entry. */
const MAX_TEXT = 300;

/** The events of a recording. */
export class Timeline {
  readonly entries: TimelineEntry[] = [];
  readonly #categories: ReadonlySet<string> | undefined;
  readonly #timeOf: (moment: number) => number;

  /**
   * @param categories The enabled categories: `page`, `interaction`, `console`, `network`, `connection`. Default: all.
   * @param timeOf Returns the whole milliseconds of a moment (`clock.now()`) since the recording started.
   */
  constructor(categories: readonly string[] | undefined, timeOf: (moment: number) => number) {
    this.#categories = categories && new Set(categories);
    this.#timeOf = timeOf;
  }

  includes(category: Category): boolean {
    return this.#categories?.has(category) ?? true;
  }

  /**
   * Adds an event if its category is enabled. Redacts secrets in the text.
   *
   * @param moment When it happened. Default: now.
   */
  add(kind: TimelineEntry['kind'], text: string, status?: string, moment = clock.now()): void {
    const category = CATEGORIES[kind];
    if (category && (!this.includes(category) || this.entries.length >= MAX_ENTRIES)) return;
    const entry = { at: this.#timeOf(moment), kind, text: excerpt(text, MAX_TEXT) };
    this.entries.push(status === undefined ? entry : { ...entry, status: excerpt(status, MAX_TEXT) });
  }
}
