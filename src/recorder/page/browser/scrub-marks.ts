import type { TimelineEntry } from '../../timeline.js';
import { byId, make } from '../../../shared/page/browser/dom.js';
import { clock, fragmentOf, plain } from '../../../shared/page/browser/format.js';
import { ALL_GROUPS, groupOf, setColor } from './kinds.js';

/** Lines on the scrub bar, each a few pixels wide: more could not be distinguished. */
const MOST_LINES = 400;

/** Percent of the bar after which the label of the last flag stands to its left. */
const FAR_RIGHT = 75;

/** Flags above the scrub bar. */
const MOST_FLAGS = 80;

/**
 * Shows a line for each event, and a flag with a label for each mark and each failure. Where several are in one place, the most
 * important one is shown, so that the number of elements has a limit.
 *
 * @param entries In the order of time.
 * @param length Of the video, in milliseconds. Without a video there are no marks.
 */
export function showMarks(
  entries: readonly TimelineEntry[],
  length: number | undefined,
  onChoose: (at: number) => void,
): void {
  const lines = length ? spread(entries, length, MOST_LINES) : [];
  byId('marks').replaceChildren(...lines.map((entry) => lineOf(entry, length!)));
  const flags = length ? spread(entries.filter(isFlag), length, MOST_FLAGS) : [];
  const places = flags.map(({ at }) => placeOf(at, length!));
  const last = places.length - 1;
  // A failure is usually at the end, where a label to the right has no space. It shares the space before it with the label there.
  const isTurned = places[last]! > FAR_RIGHT;
  const flagElements = flags.map((entry, index) => {
    const [before, place, after] = [places[index - 1] ?? 0, places[index]!, places[index + 1] ?? 100];
    const flag = flagOf(entry, onChoose);
    // A label ends where the next flag begins.
    const space = isTurned && index === last ? place - before : after - place;
    const isShared = isTurned && index >= last - 1 && last > 0;
    flag.style.maxWidth = `${isShared ? space / 2 : space}%`;
    if (isTurned && index === last) {
      flag.classList.add('turned');
      flag.style.right = `${100 - place}%`;
    } else flag.style.left = `${place}%`;
    return flag;
  });
  const container = byId('flags');
  container.replaceChildren(...flagElements);
  container.hidden = flags.length === 0;
}

/** Whether an event has a flag: a test, a task or a failure. */
export function isFlag({ kind }: TimelineEntry): boolean {
  return kind === 'mark' || kind === 'failed';
}

/** Chooses at most `most` events: the most important one of each part of the video. */
function spread(entries: readonly TimelineEntry[], length: number, most: number): TimelineEntry[] {
  const chosen = new Map<number, TimelineEntry>();
  for (const entry of entries) {
    const part = Math.min(most - 1, Math.floor((most * entry.at) / length));
    const present = chosen.get(part);
    if (!present || importance(entry) < importance(present)) chosen.set(part, entry);
  }
  return [...chosen.values()];
}

function importance(entry: TimelineEntry): number {
  return entry.kind === 'failed' ? -1 : ALL_GROUPS.indexOf(groupOf(entry));
}

function placeOf(at: number, length: number): number {
  return Math.min(100, (100 * at) / length);
}

function lineOf(entry: TimelineEntry, length: number): HTMLElement {
  const line = make('i');
  line.style.left = `${placeOf(entry.at, length)}%`;
  setColor(line, groupOf(entry));
  return line;
}

/** The list has the same link for keyboards and screen readers. */
function flagOf(entry: TimelineEntry, onChoose: (at: number) => void): HTMLElement {
  const text = plain(entry.kind === 'failed' ? `Failed: ${entry.text}` : entry.text);
  const title = `${clock(entry.at)} ${text}`;
  const flag = make('a', { href: fragmentOf(entry.at), tabindex: '-1', class: entry.kind, title }, text);
  flag.addEventListener('click', () => onChoose(entry.at));
  return flag;
}
