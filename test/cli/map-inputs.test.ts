import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { InputFormat } from '../../src/cli/input-formats.js';
import { barLines, describeProgress } from '../../src/cli/map-bar.js';
import { FailureSummary } from '../../src/cli/map-failures.js';
import { ANY_INPUT, openInputs } from '../../src/cli/map-inputs.js';
import { MapReport } from '../../src/cli/map-report.js';

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'formats-'))));
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

const SIGNAL = new AbortController().signal;

async function collect(inputs: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const input of inputs) all.push(input);
  return all;
}

/** Reads a file, and expects that its inputs were counted before. */
async function readFileNamed(name: string, text: string | Buffer, inputFormat?: InputFormat) {
  const path = join(folder, name);
  await writeFile(path, text);
  using inputs = await openInputs({ inputs: path, ...(inputFormat && { inputFormat }) }, SIGNAL, ANY_INPUT);
  const values = await collect(inputs.values);
  expect(inputs.total).toBe(values.length);
  return values;
}

/** Makes stdin these chunks. */
function typed(chunks: Iterable<string> | AsyncIterable<string>): void {
  const stdin = Readable.from(chunks).map((chunk: string) => Buffer.from(chunk));
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(stdin as unknown as typeof process.stdin);
}

it.each(['urls.jsonl', 'urls.NDJSON'])('each line of %s that is not blank is a JSON value', async (name) => {
  const text = '\uFEFF{"url":"https://a.test","n":1}\r\n\n  \n"text"\n[1,null]\n null \n7';
  expect(await readFileNamed(name, text)).toEqual([
    { url: 'https://a.test', n: 1 },
    'text',
    [1, null],
    null,
    7,
  ]);
});

const TABLE = [
  ['url', 'name', 'note "1"'],
  ['https://a.test/?a,b', 'A "great" shop', 'two\r\nlines'],
  ['https://b.test', '', ' spaces stay '],
  ['ü', '"', '😀,\n\n,"'],
];
const quoted = (cell: string) => `"${cell.replaceAll('"', '""')}"`;
const [HEADER, ...ROWS] = TABLE as [string[], ...string[][]];
const OBJECTS = ROWS.map((row) => Object.fromEntries(HEADER.map((name, at) => [name, row[at]])));

it.each([
  ['with CRLF and each field in quotes', TABLE.map((row) => `${row.map(quoted).join(',')}\r\n`).join('')],
  ['without a last line break', TABLE.map((row) => row.map(quoted).join(',')).join('\n')],
  [
    'with a byte order mark, blank lines, and quotes only where they are needed',
    `\uFEFF\n${TABLE.map((row) => row.map((cell) => (/[",\n]/.test(cell) ? quoted(cell) : cell)).join(',')).join('\n \n')}\n\n`,
  ],
])('rows of CSV are objects with the names of the header: %s', async (_what, text) => {
  expect(await readFileNamed('shops.csv', text)).toEqual(OBJECTS);
  expect(await readFileNamed('shops.CSV', Buffer.from(`\uFEFF${text}`, 'utf16le'))).toEqual(OBJECTS);
  typed(text);
  using stdin = await openInputs({ inputs: undefined, inputFormat: 'csv' }, SIGNAL, ANY_INPUT);
  expect(await collect(stdin.values)).toEqual(OBJECTS);
});

it('fields that a row of CSV lacks at its end are empty texts', async () => {
  expect(await readFileNamed('a.csv', 'url,name,note\na\nb,,\n')).toEqual([
    { url: 'a', name: '', note: '' },
    { url: 'b', name: '', note: '' },
  ]);
});

it('--input-format counts more than the name of the file, and stdin has lines without it', async () => {
  expect(await readFileNamed('a.csv', 'x,y\n1', 'lines')).toEqual(['x,y', '1']);
  expect(await readFileNamed('a.txt', 'x,y\n1,2', 'csv')).toEqual([{ x: '1', y: '2' }]);
  expect(await readFileNamed('a.csv', '1', 'jsonl')).toEqual([1]);
  expect(await readFileNamed('a.json', '1')).toEqual(['1']);
  typed(['{"a":', '1}\n']);
  using stdin = await openInputs({ inputs: '-' }, SIGNAL, ANY_INPUT);
  expect(await collect(stdin.values)).toEqual(['{"a":1}']);
});

const LONG = 'x'.repeat(300);

it.each<[what: string, name: string, text: string, message: string]>([
  ['text that is not JSON', 'a.jsonl', '{}\n\nhttps://a.test\n', 'line 3 is not JSON: https://a.test'],
  ['JSON that is cut', 'a.jsonl', '{}\n{"a":', 'line 2 is not JSON: {"a":'],
  ['two values in a line', 'a.jsonl', '1 2', 'line 1 is not JSON: 1 2'],
  [
    'a row with too many fields',
    'a.csv',
    'a,b\n"1\n2",3\n1,2,3',
    'line 4 has 3 fields, more than the header (2).',
  ],
  [
    'a quote that is not closed',
    'a.csv',
    'a,b\n1,2\n1,"2\n3\n4,5\n',
    'line 3 opens a quote that is not closed.',
  ],
  ['a quote in a field without quotes', 'a.csv', 'a\n5" disk\n', 'line 2 has a quote in a field'],
  ['text after a closing quote', 'a.csv', 'a,b\n"x\ny"z,2', 'line 3 has a quote in a field'],
  ['a column without a name', 'a.csv', '\na,,b\n1,2,3\n', 'line 2 has no name for column 2.'],
  [
    'two columns of one name',
    'a.csv',
    `a,${LONG},${LONG}\n`,
    `line 1 has two columns named ${LONG.slice(0, 100)}…`,
  ],
  [
    'a column that no file of results keeps',
    'a.csv',
    'a,__proto__\n1,2\n',
    'line 1 has a column named __proto__',
  ],
  [
    'semicolons',
    'a.csv',
    'a;b\n1;2\n',
    'line 1 has one column: a;b. The fields of CSV are separated by commas.',
  ],
])('%s is refused with exit code 2, the file and the line', async (_what, name, text, message) => {
  const path = join(folder, name);
  const refusal = (source: string) => ({
    exitCode: 2,
    message: expect.stringContaining(`in ${source}, ${message}`) as string,
  });
  await expect(readFileNamed(name, text)).rejects.toMatchObject(refusal(path));
  typed(text);
  const inputFormat = name === 'a.csv' ? 'csv' : 'jsonl';
  using stdin = await openInputs({ inputs: '-', inputFormat }, SIGNAL, ANY_INPUT);
  await expect(collect(stdin.values)).rejects.toMatchObject(refusal('stdin'));
});

it('a quote that is never closed in an endless table is refused, instead of filling the memory', async () => {
  typed(endless());
  using stdin = await openInputs({ inputs: '-', inputFormat: 'csv' }, SIGNAL, ANY_INPUT);
  await expect(collect(stdin.values)).rejects.toThrow('line 2 opens a quote that is not closed');
});

it('failures and the progress show objects in short, and reasons that differ by a field are one group', () => {
  const failures = new FailureSummary();
  const input = (name: string) => ({ url: `https://${name}.test`, name, stock: null });
  for (const name of ['tea', 'teapot'])
    failures.add(input(name), { name: 'Error', message: `no price of ${name} in the shop` });
  failures.add([1], { message: 'broken' });
  expect(failures.lines()).toEqual([
    '3 inputs failed:',
    '2 × Error: no price of tea in the shop (for example {"url":"https://tea.test","name":"tea","stock":null})',
    '1 × broken (for example [1])',
  ]);
  const attempts = [{ input: { url: 'https://a.test', text: LONG }, index: 0, attempt: 1, elapsed: 10 }];
  const lines = barLines({ ...NOTHING, running: 1, leases: 1, attempts }, 80).map((spans) =>
    spans.map(([text]) => text).join(''),
  );
  expect(lines.at(-1)).toMatch(/^ +1 s {2}\{"url":"https:\/\/a\.test","text":"x{100,}…$/);
});

const NOTHING = {
  succeeded: 0,
  failed: 0,
  skipped: 0,
  retried: 0,
  running: 0,
  waiting: 0,
  leases: 0,
  rate: 0,
};

it('the progress says that no browser has started, instead of a rate of 0', () => {
  const progress = { ...NOTHING, attempts: [], total: 5, waiting: 2 };
  expect(describeProgress(progress)).toBe('0 of 5 finished, the first browser starts or is waited for');
  expect(describeProgress({ ...progress, leases: 1 })).toBe('0 of 5 finished, 1 browser, 0.0/s');
});

it('the progress of a queue names what this process does, apart from what the whole queue does', () => {
  const attempts = [{ input: 'a', index: 0, attempt: 1, elapsed: 10 }];
  const progress = {
    ...NOTHING,
    succeeded: 54,
    total: 60,
    waiting: 3,
    rate: 0.4,
    retried: 1,
    leases: 1,
    attempts,
  };
  expect(describeProgress({ ...progress, running: 3, workers: { one: 2, two: 1 } })).toBe(
    '54 of 60 finished, 3 waiting, 3 taken by workers (one: 2, two: 1), 0.4/s, this process: 1 running, 1 retry, 1 browser',
  );
});

it('an idle worker prints its progress once, and without a rate', () => {
  vi.useFakeTimers();
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  using report = new MapReport('the queue q', { signal: SIGNAL, text: '' });
  for (const rate of [0.4, 0.3, 0.2]) {
    report.show({ ...NOTHING, attempts: [], succeeded: 38, rate });
    vi.runAllTimers();
  }
  vi.useRealTimers();
  expect(write.mock.calls.map(([text]) => text)).toEqual(['pooled-browser: 38 finished\n']);
});

function* endless(): Generator<string> {
  yield 'a,b\n1,"2\n';
  for (;;) yield `${'x'.repeat(1_000_000)}\n`;
}
