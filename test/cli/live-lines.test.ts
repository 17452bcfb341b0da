import { EventEmitter } from 'node:events';
import { stripVTControlCharacters } from 'node:util';
import { expect, it } from 'vitest';
import { LiveLines, type Span } from '../../src/cli/live-lines.js';

const BAR = '[====] 5 of 10 done, 2 failed, 1.5/s';
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
    '[====] 5 of 10 don…',
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
