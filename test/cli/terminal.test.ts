import { expect, it, vi } from 'vitest';
import { printable } from '../../src/shared/redact.js';
import { formatNote, formatTable, paintFor, printJson } from '../../src/cli/terminal.js';

/** Control characters, a line separator, a change of direction, and an isolate. */
const HOSTILE = '\x1b[2J\x9b\r\u2028\u202e\u2066';
const ESCAPED = '\\u001b[2J\\u009b\\u000d\\u2028\\u202e\\u2066';

it('escapes the characters that control a terminal, and no others', () => {
  expect(printable(`a${HOSTILE}b`)).toBe(`a${ESCAPED}b`);
  expect(printable('Größe: 1 €, 日本語 🫖 \\n')).toBe('Größe: 1 €, 日本語 🫖 \\n');
});

it('removes the colours of libraries', () => {
  expect(printable('\x1b[31mred\x1b[39m \x1b[1;2mdim\x1b[0m')).toBe('red dim');
});

it('indents further lines of a message, so that no text can look like another message', () => {
  expect(formatNote(`first${HOSTILE}\npooled-browser: second`)).toBe(
    `pooled-browser: first${ESCAPED}\n  pooled-browser: second\n`,
  );
});

it('escapes the cells of a table, and line breaks in them', () => {
  expect(
    formatTable([
      ['a', 'b\nc'],
      [HOSTILE, ''],
    ]),
  ).toEqual([`${'a'.padEnd(ESCAPED.length)}  b\\u000ac`, ESCAPED]);
});

it('escapes painted text', () => {
  expect(paintFor({ isTTY: false } as NodeJS.WriteStream)('red', HOSTILE)).toBe(ESCAPED);
});

it('prints JSON that is escaped, and has the same value', () => {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  printJson({ [HOSTILE]: [HOSTILE] });
  const line = String(write.mock.calls[0]![0]);
  write.mockRestore();
  expect(line).toMatch(/^[\x20-\x7e]+\n$/);
  expect(JSON.parse(line)).toEqual({ [HOSTILE]: [HOSTILE] });
});
