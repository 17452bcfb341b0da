import { EventEmitter } from 'node:events';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { LiveLines, type Span } from '../../src/cli/live-lines.js';
import { formatEvent } from '../../src/cli/serve.js';
import { formatNote, formatTable, paintFor, printJson } from '../../src/cli/terminal.js';
import { printable } from '../../src/shared/redact.js';

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

describe('lines that are updated in place', () => {
  const BAR = '[====] 5 of 10 finished, 2 failed, 1.5/s';
  const LINES: Span[][] = [
    [['[====]', 'green'], [BAR.slice(6)]],
    [['last error: TimeoutError: page.goto: Timeout 30000ms exceeded', 'red']],
    [['  12 s  '], ['https://shop.example.com/products/1', 'dim']],
  ];

  // oxlint-disable-next-line no-control-regex -- it finds control characters
  const ERASE = /^\r(?:\x1b\[(\d+)A)?\x1b\[J/;

  it('fits each line into one row of the screen, at any width', () => {
    for (const columns of [1, 2, 10, 37, 38, 80]) {
      const { lines } = show(columns).latest();
      expect(lines).toHaveLength(LINES.length);
      // Some terminals wrap a line that fills their last column.
      for (const line of lines) expect(line.length).toBeLessThan(Math.max(2, columns));
    }
    expect(show(20).latest().lines).toEqual([
      '[====] 5 of 10 fin…',
      'last error: Timeou…',
      '  12 s  https://sh…',
    ]);
  });

  it('erases all rows of its lines, also when the terminal became narrower or wider', () => {
    const { stream, latest } = show(80);
    for (const columns of [30, 12, 100, 7, 80]) {
      const rows = latest().lines.map((line) => Math.max(1, Math.ceil(line.length / columns)));
      stream.emit('resize', (stream.columns = columns));
      expect(latest().erased).toBe(rows.reduce((sum, count) => sum + count));
      expect(latest().lines).toHaveLength(LINES.length);
    }
  });

  it('prints messages above, and leaves the first line at the end', async () => {
    const { stream, live, latest, writes } = show(80);
    live.print('one\n');
    expect(latest()).toEqual({ erased: LINES.length, lines: ['one', ''] });
    live.print('two\n');
    expect(latest()).toEqual({ erased: 0, lines: ['two', ''] });
    await expect.poll(latest).toMatchObject({ erased: 0, lines: { length: LINES.length } });
    live.end();
    expect(writes.pop()).toBe('\n');
    expect(latest()).toEqual({ erased: LINES.length, lines: [BAR] });
    expect(stream.listenerCount('resize')).toBe(0);
  });

  it('shows no more lines than the terminal has rows', () => {
    expect(show(80, LINES, { rows: 3 }).latest().lines).toHaveLength(2);
  });

  it('counts two columns for East Asian characters and emoji, and escapes control characters', () => {
    const { lines } = show(10, [[['世界世界世界']], [['🫖🫖🫖🫖🫖']], [['\x1b[2J\n']]]).latest();
    expect(lines).toEqual(['世界世界…', '🫖🫖🫖🫖…', '\\u001b[2…']);
  });

  it.each([true, false])('has colors only where the terminal has colors: %j', (colors) => {
    const [text] = show(80, LINES, { colors }).writes;
    expect(text!.includes('\x1b[32m[====]\x1b[39m')).toBe(colors);
  });

  /** Shows lines at a terminal that keeps what is written to it. */
  function show(columns: number, shown = LINES, { rows = 20, colors = true } = {}) {
    const writes: string[] = [];
    const write = (text: string) => void writes.push(text);
    const stream = Object.assign(new EventEmitter(), {
      isTTY: true,
      columns,
      rows,
      hasColors: () => colors,
      write,
    });
    const live = new LiveLines(stream as unknown as NodeJS.WriteStream);
    live.show(() => shown);
    /** The latest output: the number of rows that it erases, from the cursor upwards, and its lines. */
    const latest = () => {
      const plain = stripVTControlCharacters(writes.at(-1)!.replace(ERASE, ''));
      const [erase, up = '0'] = ERASE.exec(writes.at(-1)!) ?? [];
      return { erased: erase === undefined ? 0 : Number(up) + 1, lines: plain.split('\n') };
    };
    return { stream, live, writes, latest };
  }
});

describe('an event of a local pool', () => {
  const RECORDED = {
    type: 'recording-finished',
    pool: 'tests',
    sessionId: '0123456789ab',
    replayId: 'r1',
    reason: 'stopped',
    milliseconds: 12_340,
    bytes: 3 * 1024 * 1024,
  } as const;

  it.each([
    [RECORDED, 'recorded      01234567  tests  r1, 12.3 s, 3.0 MB'],
    [
      { ...RECORDED, reason: 'disk-full' },
      'recorded      01234567  tests  r1, 12.3 s, 3.0 MB, incomplete: the disk is full',
    ],
    [
      { ...RECORDED, reason: 'disk-limit' },
      'recorded      01234567  tests  r1, 12.3 s, 3.0 MB, incomplete: the recording reached its size limit',
    ],
    [
      { ...RECORDED, failure: 'it was not decoded', bytes: 0 },
      'recorded      01234567  tests  r1, no video: it was not decoded',
    ],
  ] as const)('describes %j in one line', (event, line) => {
    expect(formatEvent(event, (_colour, text) => text)).toBe(line);
  });
});
