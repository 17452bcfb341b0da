import { lineError, type InputLine, type SourceName } from './input-lines.js';

interface CsvRow {
  readonly fields: readonly string[];
  /** Number of its first line, from 1. */
  readonly number: number;
}

/** Reads rows of CSV (RFC 4180) that are not blank. A quoted field may have line breaks. */
export async function* csvRows(
  lines: AsyncIterable<InputLine>,
  name: SourceName,
): AsyncGenerator<CsvRow, void, undefined> {
  let row: OpenRow | undefined;
  for await (const { text, number } of lines) {
    if (!row && text.trim() === '') continue;
    row ??= { number, fields: [] };
    if (!addLine(row, text, number)) throw lineError(name, number, BESIDE_QUOTE);
    if ((row.quoted?.text.length ?? 0) > LONGEST_FIELD) break;
    if (row.quoted) continue;
    yield row;
    row = undefined;
  }
  if (row?.quoted) throw lineError(name, row.quoted.number, NOT_CLOSED);
}

/** The longest field in quotes, in characters: a quote that is not closed would take the rest of the file. */
const LONGEST_FIELD = 16 * 1024 * 1024;

const NOT_CLOSED = 'opens a quote that is not closed. Close the quote, or write "" for a quote in a field.';
const BESIDE_QUOTE =
  'has a quote in a field that is not in quotes as a whole. For example, write the text 5" disk as "5"" disk".';

/** A row of which not all lines were read. */
interface OpenRow {
  readonly number: number;
  readonly fields: string[];
  /** The field that goes on in the next line, and the line of its opening quote. */
  quoted?: { readonly text: string; readonly number: number } | undefined;
}

/** The text of a field in quotes, up to its closing quote or the end of the line. */
const QUOTED = /[^"]*(?:""[^"]*)*/y;
const PLAIN = /[^",]*/y;

/** Adds the fields of a line. Returns false if a field has a quote that is not allowed there. */
function addLine(row: OpenRow, text: string, number: number): boolean {
  const line = text.endsWith('\r') ? text.slice(0, -1) : text;
  for (let at = 0; at <= line.length; at++) {
    if (!row.quoted && line[at] === '"') {
      row.quoted = { text: '', number };
      at++;
    }
    const pattern = row.quoted ? QUOTED : PLAIN;
    pattern.lastIndex = at;
    const [part] = pattern.exec(line)!;
    at += part.length;
    if (row.quoted) {
      const { text: before, number: first } = row.quoted;
      if (at === line.length) {
        row.quoted = { text: `${before}${part}${text.slice(at)}\n`, number: first };
        return true;
      }
      at++;
      row.fields.push(`${before}${part}`.replaceAll('""', '"'));
      row.quoted = undefined;
    } else row.fields.push(part);
    if (at < line.length && line[at] !== ',') return false;
  }
  return true;
}
