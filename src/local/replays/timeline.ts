import { excerpt } from '../../shared/redact.js';
import type { TelemetryCategory } from '../../service/wire.js';
import type { TimelineEntry } from './local-replay.js';

type Kind = TimelineEntry['kind'];

/** Later entries are left out: a page that logs without end must not fill the memory. */
const MOST_ENTRIES = 2_000;

const LONGEST_TEXT = 300;

/** Categories that cost little: what a timeline holds when a pool declares no telemetry. */
const BY_DEFAULT: readonly TelemetryCategory[] = ['console', 'page', 'interaction', 'network', 'connection'];

const CATEGORIES: Readonly<Partial<Record<Kind, TelemetryCategory>>> = {
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
};

/** What happened during a recording. */
export class Timeline {
  readonly entries: TimelineEntry[] = [];
  readonly #categories: ReadonlySet<TelemetryCategory>;
  readonly #now: () => number;

  /** @param now Milliseconds since the recording started. */
  constructor(categories: readonly TelemetryCategory[] | undefined, now: () => number) {
    this.#categories = new Set(categories ?? BY_DEFAULT);
    this.#now = now;
  }

  holds(category: TelemetryCategory): boolean {
    return this.#categories.has(category);
  }

  add(kind: Kind, text: string): void {
    const category = CATEGORIES[kind];
    // The end of the recording stands in every timeline.
    if (category && (!this.holds(category) || this.entries.length >= MOST_ENTRIES)) return;
    const line = excerpt(text.replaceAll(/\s+/g, ' ').trim(), LONGEST_TEXT);
    this.entries.push({ at: Math.round(this.#now()), kind, text: line });
  }
}
