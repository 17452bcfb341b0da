import { closeSync, createWriteStream, openSync, readSync, writeFileSync, type WriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { isRecord, jsonOf } from '../shared/json.js';
import type { ProcessId } from '../shared/process-id.js';
import type { MaskedPictures, RecordedSession } from './page/replay-page.js';
import { entryOf, type TimelineEntry } from './timeline.js';

/** What a recording is, in the first line of its journal. */
export interface JournalHead {
  readonly format: typeof FORMAT;
  readonly replayId: string;
  /** In ISO 8601. */
  readonly startedAt: string;
  readonly framesPerSecond: number;
  readonly isSingle: boolean;
  /** The process that records. */
  readonly process: ProcessId;
  readonly session: RecordedSession;
}

/** What a journal contains. */
export interface ReadJournal {
  readonly head: JournalHead;
  readonly timeline: readonly TimelineEntry[];
  /** Missing if no picture was masked. */
  readonly masked: MaskedPictures | undefined;
  /** How the recording ended. Undefined if its process ended before. */
  readonly end: JournalEnd | undefined;
}

/** The last line of a journal. */
export interface JournalEnd {
  /** In milliseconds. */
  readonly length: number;
  readonly result?: 'succeeded' | 'failed' | undefined;
}

export const FORMAT = 'pooled-browser recording 1';

/** Longest first line, in bytes. */
const LONGEST_HEAD = 64 * 1024;

/** Bytes that may wait for a slow disk. Further lines are dropped. */
const MOST_WAITING = 1024 * 1024;

/**
 * The timeline of a recording in a file, a JSON object per line, so that a killed process leaves it. The first line shows that the
 * folder is one of ours.
 */
export class Journal {
  readonly #file: WriteStream;
  #hasFailed = false;

  /** @throws if the file cannot be written. @param onFailure Called once when it cannot be written any longer. */
  constructor(path: string, head: Omit<JournalHead, 'format'>, onFailure: (error: Error) => void) {
    writeFileSync(path, `${JSON.stringify({ format: FORMAT, ...head })}\n`, { mode: 0o600, flag: 'wx' });
    this.#file = createWriteStream(path, { flags: 'a' });
    this.#file.once('error', (error) => {
      this.#hasFailed = true;
      onFailure(error);
    });
  }

  /** @param index Of an entry that was written before, and has changed. */
  add(entry: TimelineEntry, index?: number): void {
    this.#write(index === undefined ? entry : { index, ...entry });
  }

  addMask(masked: MaskedPictures): void {
    this.#write({ masked });
  }

  /** Ends the file. Never rejects. */
  async end(end: JournalEnd): Promise<void> {
    this.#write(end);
    this.#file.end();
    if (!this.#hasFailed) await finished(this.#file).catch(() => {});
  }

  #write(line: object): void {
    if (this.#hasFailed || this.#file.writableEnded || this.#file.writableLength > MOST_WAITING) return;
    this.#file.write(`${JSON.stringify(line)}\n`);
  }
}

/** Resolves to undefined if the file is no journal. */
export async function readJournal(path: string): Promise<ReadJournal | undefined> {
  const head = headOf(path);
  if (!head) return undefined;
  const timeline: TimelineEntry[] = [];
  let end: JournalEnd | undefined;
  let mask: MaskedPictures | undefined;
  await using file = await open(path);
  let isFirst = true;
  for await (const text of file.readLines()) {
    // The last line can be incomplete.
    const line = isFirst ? undefined : jsonOf(text);
    isFirst = false;
    if (!isRecord(line)) continue;
    const { length, result, masked } = line;
    if (masked === 'covered' || masked === 'left-out') mask = masked;
    if (typeof length === 'number')
      end = { length, result: result === 'succeeded' || result === 'failed' ? result : undefined };
    const entry = entryOf(line);
    const { index } = line;
    if (entry && typeof index === 'number' && index in timeline) timeline[index] = entry;
    else if (entry) timeline.push(entry);
  }
  return { head, timeline, masked: mask, end };
}

/** Reads the first line. Undefined if it is not that of a journal. */
export function headOf(path: string): JournalHead | undefined {
  const head = jsonOf(firstLineOf(path));
  if (!isRecord(head) || head['format'] !== FORMAT || !isRecord(head['session'])) return undefined;
  return isRecord(head['process']) ? (head as unknown as JournalHead) : undefined;
}

function firstLineOf(path: string): string {
  try {
    const file = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(LONGEST_HEAD);
      return bytes.toString('utf8', 0, readSync(file, bytes)).split('\n')[0] ?? '';
    } finally {
      closeSync(file);
    }
  } catch {
    return '';
  }
}
