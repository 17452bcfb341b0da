import { readRecords, readRecordsInOrder } from '../map/checkpoint.js';
import { replaceFile } from '../map/checkpoint-file.js';
import type { OutcomeRecord } from '../map/outcome.js';
import { isRecord } from '../shared/json.js';
import { printable } from '../shared/redact.js';

/**
 * Writes the results of a checkpoint as CSV (RFC 4180), in the order of the inputs. Each path in a result is a column:
 * `index`, `value` or `value.title`, `reason.message`. Arrays and deeper objects are JSON.
 */
export async function writeCsv(checkpoint: string, path: string): Promise<void> {
  // The columns are known only after all results.
  const columns = new Set(['index', 'input', 'status', 'attempts', 'sessionId']);
  for await (const record of readRecords(checkpoint)) {
    for (const column of cellsOf(record).keys()) columns.add(column);
  }
  await replaceFile(path, rows(checkpoint, [...columns]));
}

async function* rows(checkpoint: string, columns: readonly string[]): AsyncGenerator<string> {
  yield toRow(columns);
  for await (const record of readRecordsInOrder(checkpoint)) {
    const cells = cellsOf(record);
    yield toRow(columns.map((column) => cells.get(column)));
  }
}

/** The values of a result by their path. */
function cellsOf(record: OutcomeRecord): Map<string, unknown> {
  const cells = Object.entries(record).flatMap(([name, value]): [string, unknown][] =>
    isRecord(value)
      ? Object.entries(value).map(([inner, cell]) => [`${name}.${inner}`, cell])
      : [[name, value]],
  );
  return new Map(cells);
}

function toRow(cells: readonly unknown[]): string {
  return `${cells.map(toCell).join(',')}\r\n`;
}

/** Control characters, but not those that text in a cell may have: tab, line feed, carriage return. */
// oxlint-disable-next-line no-control-regex -- it finds control characters
const CONTROL = /[\0-\x08\v\f\x0E-\x1F\x7F-\x9F]/g;

function toCell(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const clean = text.replaceAll(CONTROL, printable);
  return /[",\r\n]/.test(clean) ? `"${clean.replaceAll('"', '""')}"` : clean;
}
