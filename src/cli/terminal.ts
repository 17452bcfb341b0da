import { styleText } from 'node:util';
import { sentence } from '../shared/errors.js';
import { excerpt, printable, printableLines } from '../shared/redact.js';

/** Prints a message on stderr; stdout is reserved for results. */
export function note(text: string): void {
  process.stderr.write(formatNote(text));
}

/** Formats a message. Indents further lines, so that text from outside can't look like another message. */
export function formatNote(text: string): string {
  return `pooled-browser: ${printableLines(text).replaceAll('\n', '\n  ')}\n`;
}

/**
 * Prints a value as one line of JSON on stdout.
 *
 * @returns False when the reader of stdout is slower than the writer.
 */
export function printJson(value: unknown): boolean {
  return process.stdout.write(`${printable(JSON.stringify(value))}\n`);
}

/** A number with its noun, which has a plural with an s. */
export function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** Formats rows as lines, in columns of equal width. */
export function formatTable(rows: readonly (readonly string[])[]): string[] {
  const table = rows.map((row) => row.map(printable));
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  return table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
}

export type Format = Parameters<typeof styleText>[0];

/** Escapes a text, and colors it where the terminal can show colors. */
export type Paint = (format: Format, text: string) => string;

export function paintFor(stream: NodeJS.WriteStream): Paint {
  const hasColors = stream.isTTY && stream.hasColors();
  // By default, newer versions of Node check stdout, whatever the stream is.
  const style: Paint = (format, text) => styleText(format, text, { validateStream: false });
  return (format, text) => (hasColors ? style(format, printable(text)) : printable(text));
}

/** Longest message of an error without `--debug`, in characters: Chromium and libraries can write pages. */
const LONGEST_MESSAGE = 1000;

/** Joins the lines of a message, each as a sentence. */
export function oneLine(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return excerpt(lines.length < 2 ? text : lines.map(sentence).join(' '), LONGEST_MESSAGE);
}
