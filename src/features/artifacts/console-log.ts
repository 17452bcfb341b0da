import type { PageReport } from '../../drivers/connector.js';
import { mapStrings } from '../../shared/json.js';
import { lengthBeforeCut, printable, shortenUrls } from '../../shared/redact.js';

/** Most reports that are kept. The oldest are dropped first. */
const MOST_REPORTS = 1000;
/** Longest text in a line, in characters. */
const LONGEST_TEXT = 4000;

/** What pages reported, of bounded size. It costs almost nothing until the lines are read. */
export class ConsoleLog {
  readonly #reports: { readonly time: number; readonly report: object }[] = [];
  #count = 0;

  readonly add = (report: PageReport): void => {
    this.#reports[this.#count++ % MOST_REPORTS] = {
      time: Date.now(),
      report: mapStrings(report, cut) as object,
    };
  };

  /** The reports as lines of JSON, the oldest first, without secrets. */
  get text(): string {
    const dropped = Math.max(0, this.#count - MOST_REPORTS);
    const oldest = dropped % MOST_REPORTS;
    const reports = [...this.#reports.slice(oldest), ...this.#reports.slice(0, oldest)];
    const lines = reports.map(({ time, report }) => ({ time: new Date(time).toISOString(), ...report }));
    return [...(dropped > 0 ? [{ type: 'dropped', count: dropped }] : []), ...lines].map(toLine).join('');
  }
}

function toLine(entry: object): string {
  return `${printable(JSON.stringify(mapStrings(entry, (text) => shortenUrls(text, LONGEST_TEXT))))}\n`;
}

/** Limits the memory: a page may log megabytes. */
function cut(text: string): string {
  const most = lengthBeforeCut(LONGEST_TEXT);
  // A copy, because a part of a string keeps the whole string in memory.
  return text.length > most ? Buffer.from(text.slice(0, most)).toString() : text;
}
