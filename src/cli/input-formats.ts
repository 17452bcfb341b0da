import { parseJson } from '../shared/json.js';
import { excerpt } from '../shared/redact.js';
import { csvRows } from './csv-rows.js';
import { lineError, type InputLine, type SourceName } from './input-lines.js';

/** How the inputs of `map` are written. */
export const INPUT_FORMATS = ['lines', 'jsonl', 'csv'] as const;
export type InputFormat = (typeof INPUT_FORMATS)[number];

/** The format that the name of a file stands for. */
export function formatOf(path: string): InputFormat {
  if (/\.csv$/i.test(path)) return 'csv';
  return /\.(jsonl|ndjson)$/i.test(path) ? 'jsonl' : 'lines';
}

type Lines = AsyncIterable<InputLine>;

/** Reads the inputs in the lines of a source. A line that is no input throws `lineError`. */
export const readInputs: Readonly<
  Record<InputFormat, (lines: Lines, name: SourceName) => AsyncIterable<unknown>>
> = { lines: texts, jsonl: jsonValues, csv: csvObjects };

/** Describes an input in a message: a text as it is, any other value as JSON. */
export function showInput(input: unknown): string {
  return typeof input === 'string' ? input : (JSON.stringify(input) ?? 'undefined');
}

async function* texts(lines: Lines): AsyncGenerator<string, void, undefined> {
  for await (const { text } of lines) if (text.trim() !== '') yield text.trim();
}

async function* jsonValues(lines: Lines, name: SourceName): AsyncGenerator<unknown, void, undefined> {
  for await (const { text, number } of lines) {
    if (text.trim() === '') continue;
    let value: unknown;
    try {
      value = parseJson(text);
    } catch (cause) {
      const advice = 'Each line must be one JSON value. For a list of texts, pass --input-format lines.';
      throw lineError(name, number, `is not JSON: ${excerpt(text, 100)}\n${advice}`, cause);
    }
    yield value;
  }
}

/** The rows below the header, each as an object with the names of the columns. */
async function* csvObjects(
  lines: Lines,
  name: SourceName,
): AsyncGenerator<Record<string, string>, void, undefined> {
  let columns: readonly string[] | undefined;
  for await (const { fields, number } of csvRows(lines, name)) {
    const fault = columns ? faultInRow(fields, columns) : faultInHeader(fields);
    if (fault !== undefined) throw lineError(name, number, fault);
    if (columns) yield Object.fromEntries(columns.map((column, at) => [column, fields[at] ?? '']));
    else columns = fields;
  }
}

function faultInRow({ length }: readonly string[], columns: readonly string[]): string | undefined {
  if (length <= columns.length) return undefined;
  return `has ${length} fields, more than the header (${columns.length}). A field with a comma must be in quotes.`;
}

function faultInHeader(columns: readonly string[]): string | undefined {
  const [first = ''] = columns;
  if (columns.length === 1 && /[;\t]/.test(first))
    return `has one column: ${excerpt(first, 100)}. The fields of CSV are separated by commas.`;
  const unnamed = columns.findIndex((column) => column.trim() === '');
  if (unnamed !== -1) return `has no name for column ${unnamed + 1}. Name each column of the header.`;
  const twice = columns.find((column, at) => columns.indexOf(column) !== at);
  if (twice !== undefined) return `has two columns named ${excerpt(twice, 100)}. Rename one of them.`;
  // A file of results is read without this key.
  return columns.includes('__proto__') ? 'has a column named __proto__. Rename this column.' : undefined;
}
