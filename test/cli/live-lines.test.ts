import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { LiveLines, type Span } from '../../src/cli/live-lines.js';

const BAR = '[====] 5 of 10 done, 2 failed, 1.5/s';
const LINES: Span[][] = [
  [['[====]', 'green'], [BAR.slice(6)]],
  [['last error: TimeoutError: page.goto: Timeout 30000ms exceeded', 'red']],
  [['  12 s  '], ['https://shop.example.com/products/1', 'dim']],
];

it('fits each line into one row of the screen, at any width', () => {
  for (const columns of [1, 2, 10, 37, 38, 80]) {
    const { lines } = new Screen(columns).show(LINES);
    expect(lines).toHaveLength(LINES.length);
    // Some terminals wrap a line that fills their last column.
    for (const line of lines) expect(line.length).toBeLessThan(Math.max(2, columns));
  }
  const { lines } = new Screen(20).show(LINES);
  expect(lines).toEqual(['[====] 5 of 10 don…', 'last error: Timeou…', '  12 s  https://sh…']);
});

it('erases all rows of its lines, also when the terminal became narrower or wider', () => {
  const screen = new Screen(80).show(LINES);
  for (const columns of [30, 12, 100, 7, 80]) {
    const rows = screen.lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / columns)), 0);
    screen.resize(columns);
    expect(screen.erased).toBe(rows);
    expect(screen.lines).toHaveLength(LINES.length);
  }
});

it('prints messages above, and leaves the first line at the end', async () => {
  const screen = new Screen(80).show(LINES);
  for (const [message, erased] of [
    ['one\n', LINES.length],
    ['two\n', 0],
  ] as const) {
    screen.live.print(message);
    expect([screen.erased, screen.lines]).toEqual([erased, [message.trim(), '']]);
  }
  await expect.poll(() => screen.lines).toHaveLength(LINES.length);
  expect(screen.erased).toBe(0);
  screen.live.end();
  expect(screen.all.at(-2)).toMatchObject({ erased: LINES.length, lines: [BAR] });
  expect(screen.lines).toEqual(['', '']);
  expect(screen.listenerCount('resize')).toBe(0);
});

it('shows no more lines than the terminal has rows', () => {
  expect(new Screen(80, { rows: 3 }).show(LINES).lines).toHaveLength(2);
});

it('counts two columns for East Asian characters and emoji, and escapes control characters', () => {
  const screen = new Screen(10).show([[['世界世界世界']], [['🫖🫖🫖🫖🫖']], [['\x1b[2J\n']]]);
  expect(screen.lines).toEqual(['世界世界…', '🫖🫖🫖🫖…', '\\u001b[2…']);
});

it.each([true, false])('has colors only where the terminal has colors: %j', (colors) => {
  const { text } = new Screen(80, { colors }).show(LINES);
  expect(text.includes('\x1b[32m[====]\x1b[39m')).toBe(colors);
});

/** A terminal that keeps what is written to it. */
class Screen extends EventEmitter {
  readonly isTTY = true;
  readonly live: LiveLines;
  readonly rows: number;
  readonly all: { erased: number; lines: string[] }[] = [];
  readonly hasColors: () => boolean;
  columns: number;
  text = '';

  constructor(columns: number, { rows = 20, colors = true } = {}) {
    super();
    this.columns = columns;
    this.rows = rows;
    this.hasColors = () => colors;
    this.live = new LiveLines(this as unknown as NodeJS.WriteStream);
  }

  show(lines: Span[][]): this {
    this.live.show(() => lines);
    return this;
  }

  resize(columns: number): void {
    this.columns = columns;
    this.emit('resize');
  }

  /** Number of rows that the latest output erases, from the cursor upwards. */
  get erased(): number {
    return this.all.at(-1)!.erased;
  }

  /** The lines of the latest output. */
  get lines(): string[] {
    return this.all.at(-1)!.lines;
  }

  write(text: string): void {
    this.text += text;
    // oxlint-disable-next-line no-control-regex -- it finds control characters
    const plain = text.replaceAll(/\x1b\[[\d;]*m/g, '');
    // oxlint-disable-next-line no-control-regex -- it finds control characters
    const [, erase, up = '0', rest] = /^(\r(?:\x1b\[(\d+)A)?\x1b\[J)?([^]*)$/.exec(plain)!;
    this.all.push({ erased: erase === undefined ? 0 : Number(up) + 1, lines: rest!.split('\n') });
  }
}
