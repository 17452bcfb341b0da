import { once } from 'node:events';
import { access, constants, open, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readRecords, readRecordsInOrder } from '../jobs/checkpoint.js';
import { replaceFile } from '../jobs/checkpoint-file.js';
import type { OutcomeRecord } from '../jobs/outcome.js';
import { isRecord } from '../shared/json.js';
import { printable } from '../shared/redact.js';
import { CliError, EXIT } from './errors.js';
import type { MapReport } from './map-report.js';
import { printJson } from './terminal.js';

/** Options about the file of the results. */
export interface OutOptions {
  out?: string;
  format: 'jsonl' | 'csv';
  resume?: true;
  force?: true;
}

/** Prints a result on stdout. Resolves when the reader is ready for the next result. */
export async function printRecord(record: OutcomeRecord): Promise<void> {
  if (!printJson(record)) await once(process.stdout, 'drain');
}

/** The file that stores the results while the job runs. */
export function checkpointOf({ out, format }: OutOptions): string | undefined {
  return format === 'csv' && out !== undefined ? `${out}.jsonl` : out;
}

/** Where the results go. Disposed of, removes a new file in which a job that did not complete has left nothing. */
export interface Out extends AsyncDisposable {
  isComplete: boolean;
}

/** Refuses to mix the results of two jobs in one file, and a file that can't be written. */
export async function openOut(command: OutOptions): Promise<Out> {
  await checkOut(command);
  const path = checkpointOf(command);
  const isNew = path !== undefined && (await sizeOf(path)) === undefined;
  const result: Out = {
    isComplete: false,
    [Symbol.asyncDispose]: async () => {
      if (isNew && !result.isComplete && (await sizeOf(path)) === 0) await rm(path, { force: true });
    },
  };
  return result;
}

async function checkOut(command: OutOptions): Promise<void> {
  const { out, format, resume, force } = command;
  if (force && !resume) throw new CliError('--force needs --resume.', EXIT.usage);
  if (out === undefined) {
    if (resume) throw new CliError('--resume needs --out, the file with the earlier results.', EXIT.usage);
    if (format === 'csv') throw new CliError('--format csv needs --out, a file for the results.', EXIT.usage);
    return;
  }
  const checkpoint = checkpointOf(command)!;
  const canResume = resume && (checkpoint === out || (await isUsed(checkpoint)));
  for (const path of new Set([out, checkpoint])) {
    await expectWritable(path);
    if (canResume || !(await isUsed(path))) continue;
    throw new CliError(
      `${path} is not empty. Pass --resume to continue its job, or name another file.`,
      EXIT.usage,
    );
  }
}

export async function isUsed(path: string): Promise<boolean> {
  return ((await sizeOf(path)) ?? 0) > 0;
}

/** Size of a file in bytes; undefined if there is none. */
async function sizeOf(path: string): Promise<number | undefined> {
  const file = await stat(path).catch(() => undefined);
  if (file) return file.isFile() ? file.size : 0;
  return undefined;
}

async function expectWritable(path: string): Promise<void> {
  try {
    const exists = await stat(path).catch(() => undefined);
    if (exists) await (await open(path, 'r+')).close();
    else await access(dirname(path), constants.W_OK);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? `the folder ${dirname(path)} does not exist` : message;
    throw new CliError(`--out ${path} can't be written: ${why}.`, EXIT.usage, { cause });
  }
}

/** Never rejects: an error that ended the job counts more. */
export async function writeTable(checkpoint: string, out: string, report: MapReport): Promise<void> {
  await writeCsv(checkpoint, out).catch((error: Error) => {
    report.fail(`${out} can't be written: ${error.message}. The results are in ${checkpoint}.`);
  });
}

/**
 * Writes the results of a checkpoint as CSV (RFC 4180), in the order of the inputs. Each path in a result is a column:
 * `index`, `input` or `input.url`, `value` or `value.title`, `reason.message`. Arrays and deeper objects are JSON.
 */
export async function writeCsv(checkpoint: string, path: string): Promise<void> {
  // The columns are known only after all results.
  const ofInputs = new Set<string>();
  const others = new Set(['status', 'attempts', 'sessionId']);
  for await (const record of readRecords(checkpoint)) {
    for (const column of cellsOf(record).keys())
      (/^input(\.|$)/.test(column) ? ofInputs : others).add(column);
  }
  others.delete('index');
  const columns = ['index', ...(ofInputs.size > 0 ? ofInputs : ['input']), ...others];
  await replaceFile(path, rows(checkpoint, columns));
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

/** What a spreadsheet takes for a formula, which can run programs and send cells. Texts come from web pages. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;

function toCell(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? asText(value) : JSON.stringify(value);
  const clean = text.replaceAll(CONTROL, printable);
  return /[",\r\n]/.test(clean) ? `"${clean.replaceAll('"', '""')}"` : clean;
}

/** A spreadsheet shows the apostrophe as part of the cell, or hides it. A text that is a number stays one. */
function asText(text: string): string {
  return FORMULA.test(text) && !/^[+-]?\d+([.,]\d+)?$/.test(text) ? `'${text}` : text;
}
