import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { LiveLines, type Span } from '../../src/cli/live-lines.js';

const LINES: Span[][] = [
  [['[====]', 'green'], [' 5 of 10 done, 2 failed, 1.5/s']],
  [['last error: TimeoutError: page.goto: Timeout 30000ms exceeded', 'red']],
  [['  12 s  '], ['https://shop.example.com/products/1', 'dim']],
];

it('fits each line into one row of the screen, at any width', () => {
  for (const columns of [1, 2, 10, 37, 38, 80]) {
    const screen = new Screen(columns);
    open(screen).show(() => LINES);
    expect(screen.shown).toHaveLength(LINES.length);
  }
  const screen = new Screen(20);
  open(screen).show(() => LINES);
  expect(screen.shown).toEqual(['[====] 5 of 10 don…', 'last error: Timeou…', '  12 s  https://sh…']);
});

it('replaces its lines also when the terminal becomes narrower or wider', () => {
  const screen = new Screen(80);
  const lines = open(screen);
  lines.print('first\n');
  lines.show(() => LINES);
  for (const columns of [30, 12, 100, 7, 80]) {
    screen.resize(columns);
    expect(screen.shown.filter((row) => row !== 'first')).toHaveLength(LINES.length);
    expect(screen.shown[0]).toBe('first');
  }
});

it('prints messages above, and leaves the first line at the end', async () => {
  const screen = new Screen(80);
  const lines = open(screen);
  lines.show(() => LINES);
  lines.print('one\n');
  lines.print('two\n');
  await expect.poll(() => screen.shown.length).toBe(2 + LINES.length);
  expect(screen.shown.slice(0, 2)).toEqual(['one', 'two']);
  lines.end();
  screen.write('after\n');
  expect(screen.shown).toEqual(['one', 'two', '[====] 5 of 10 done, 2 failed, 1.5/s', 'after', '']);
  screen.resize(20);
  expect(screen.listenerCount('resize')).toBe(0);
});

it('shows no more lines than the terminal has rows', () => {
  const screen = new Screen(80, 3);
  open(screen).show(() => LINES);
  expect(screen.shown).toHaveLength(2);
});

it('counts two columns for East Asian characters and emoji, and escapes control characters', () => {
  const screen = new Screen(10);
  open(screen).show(() => [[['世界世界世界']], [['🫖🫖🫖🫖🫖']], [['\x1b[2J\n']]]);
  expect(screen.shown).toEqual(['世界世界…', '🫖🫖🫖🫖…', '\\u001b[2…']);
});

it('has colors only where the terminal has colors', () => {
  for (const colors of [true, false]) {
    const screen = new Screen(80, 20, colors);
    open(screen).show(() => LINES);
    expect(screen.text.includes('\x1b[32m[====]\x1b[39m')).toBe(colors);
  }
});

function open(screen: Screen): LiveLines {
  return new LiveLines(screen as unknown as NodeJS.WriteStream);
}

/** A code of the terminal, a line break, or text. */
// oxlint-disable-next-line no-control-regex -- it finds control characters
const TOKEN = /\x1b\[(\d*)([A-Z])|\x1b\[[\d;]*m|[\r\n]|[^\x1b\r\n]+/g;

/** A terminal that wraps its lines again when its width changes, as most terminals do. */
class Screen extends EventEmitter {
  readonly isTTY = true;
  columns: number;
  readonly rows: number;
  text = '';
  readonly #colors: boolean;
  /** The lines as they were written, each of one or several rows. */
  readonly #lines = [''];
  /** The cursor. */
  #line = 0;
  #at = 0;

  constructor(columns: number, rows = 20, colors = true) {
    super();
    this.columns = columns;
    this.rows = rows;
    this.#colors = colors;
  }

  hasColors(): boolean {
    return this.#colors;
  }

  /** The rows of the screen. */
  get shown(): string[] {
    return this.#rows().map(({ text }) => text);
  }

  resize(columns: number): void {
    this.columns = columns;
    this.emit('resize');
  }

  write(text: string): void {
    this.text += text;
    for (const [token, count, code] of text.matchAll(TOKEN)) {
      if (token === '\r') this.#at -= this.#at % this.columns;
      else if (token === '\n') this.#newLine();
      else if (code === 'A') this.#up(Number(count));
      else if (code === 'J') this.#clear();
      else if (!token.startsWith('\x1b')) this.#put(token);
    }
  }

  #put(text: string): void {
    const line = this.#lines[this.#line]!;
    this.#lines[this.#line] = line.slice(0, this.#at) + text + line.slice(this.#at + text.length);
    this.#at += text.length;
  }

  #newLine(): void {
    this.#line++;
    this.#at = 0;
    if (this.#line === this.#lines.length) this.#lines.push('');
  }

  #up(count: number): void {
    const rows = this.#rows();
    const row = rows.findLastIndex(({ line, start }) => line === this.#line && start <= this.#at);
    const { line, start } = rows[Math.max(0, row - count)]!;
    [this.#line, this.#at] = [line, start];
  }

  #clear(): void {
    this.#lines.splice(this.#line + 1);
    this.#lines[this.#line] = this.#lines[this.#line]!.slice(0, this.#at);
  }

  #rows(): { line: number; start: number; text: string }[] {
    return this.#lines.flatMap((text, line) => {
      const starts = Array.from(
        { length: Math.max(1, Math.ceil(text.length / this.columns)) },
        (_, row) => row * this.columns,
      );
      return starts.map((start) => ({ line, start, text: text.slice(start, start + this.columns) }));
    });
  }
}
