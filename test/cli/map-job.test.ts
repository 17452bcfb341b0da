import { existsSync } from 'node:fs';
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { Command } from 'commander';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { ANY_INPUT, openInputs, readInputCheck, withHosts } from '../../src/cli/map-inputs.js';
import { writeCsv } from '../../src/cli/map-out.js';
import { MapReport } from '../../src/cli/map-report.js';
import { loadScript } from '../../src/cli/map-script.js';
import { KnownInputs } from '../../src/cli/queue-inputs.js';
import {
  addTaskOptions,
  settingsOf,
  type TaskCommandOptions,
  workSettingsOf,
} from '../../src/cli/task-command.js';
import { namingFile } from '../../src/shared/naming-file.js';

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'inputs-'))));
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

const SIGNAL = new AbortController().signal;
/** U+0A0A and U+0D0A contain the bytes of a line break in UTF-16. */
const LIST = 'https://a.test/ü\r\n\r\n\u0A0A\u0D0A 😀\nlast';
const LINES = ['https://a.test/ü', '\u0A0A\u0D0A 😀', 'last'];

const utf16 = (text: string) => Buffer.from(text, 'utf16le');
const ENCODED: [string, Buffer][] = [
  ['UTF-8', Buffer.from(LIST)],
  ['UTF-8 with a byte order mark', Buffer.from(`\uFEFF${LIST}`)],
  ['UTF-16LE', utf16(`\uFEFF${LIST}`)],
  ['UTF-16BE', utf16(`\uFEFF${LIST}`).swap16()],
];

async function collect(inputs: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const input of inputs) all.push(input);
  return all;
}

async function readInputs(bytes: Buffer): Promise<unknown[]> {
  const path = join(folder, 'list.txt');
  await writeFile(path, bytes);
  using inputs = await openInputs({ inputs: path }, SIGNAL, ANY_INPUT);
  expect(inputs.total).toBe(LINES.length);
  return await collect(inputs.values);
}

/** Reads the bytes one by one, as a slow pipe. */
async function readStdin(bytes: Buffer): Promise<unknown[]> {
  const stdin = Readable.from([...bytes].map((byte) => Buffer.from([byte])));
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(stdin as unknown as typeof process.stdin);
  using inputs = await openInputs({ inputs: '-' }, SIGNAL, ANY_INPUT);
  return await collect(inputs.values);
}

it.each(ENCODED)('a list in %s is read, as a file and from stdin', async (_encoding, bytes) => {
  expect(await readInputs(bytes)).toEqual(LINES);
  expect(await readStdin(bytes)).toEqual(LINES);
});

it('a table with tabs is read line by line, and a message says so', async () => {
  const path = join(folder, 'shops.TSV');
  await writeFile(path, 'url\tname\r\nhttps://a.test/\t"A; B"\r\n');
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  using inputs = await openInputs({ inputs: path }, SIGNAL, ANY_INPUT);
  expect(await collect(inputs.values)).toEqual(['url\tname', 'https://a.test/\t"A; B"']);
  expect(write.mock.calls.join('')).toContain('shops.TSV is a table: each of its lines is one input');
});

it('a line is read in linear time, also if each of its characters has a byte like a line feed', async () => {
  const path = join(folder, 'list.txt');
  await writeFile(path, utf16(`\uFEFF${'\u0A41'.repeat(300_000)}\nb`));
  using inputs = await openInputs({ inputs: path }, SIGNAL, ANY_INPUT);
  expect((await collect(inputs.values)).map((line) => String(line).length)).toEqual([300_000, 1]);
});

it.each<[string, Buffer, string]>([
  ['Latin-1', Buffer.from('a\nb\ncaf\xe9\nd', 'latin1'), 'line 3 is not text in UTF-8'],
  ['UTF-8 that ends within a character', Buffer.from('a\nü').subarray(0, -1), 'line 2 is not text in UTF-8'],
  ['UTF-16 without a byte order mark', utf16('a\nb'), 'line 1 is not text in UTF-8'],
  ['UTF-16 with half a character', utf16('\uFEFFa\nb\n\uD83D\n'), 'line 3 is not text in UTF-16LE'],
  ['UTF-32', Buffer.from([0xff, 0xfe, 0, 0, 0x61, 0, 0, 0]), 'line 1 is not text in UTF-16LE'],
])('%s is refused with exit code 2, the line and what to do', async (_encoding, bytes, message) => {
  const refusal = {
    exitCode: 2,
    message: expect.stringContaining(`${message}. Save the list as UTF-8`) as string,
  };
  await expect(readInputs(bytes)).rejects.toMatchObject(refusal);
  await expect(readStdin(bytes)).rejects.toMatchObject(refusal);
});

/** Earlier results with their index and input, such as `0a`, and the inputs now. */
it.each([
  ['the same inputs', '0a 1b', 'a b', undefined],
  ['more inputs at the end', '1b 0a', 'a b c', undefined],
  ['each input that --force has accepted', '0a 1b 1c', 'a c', undefined],
  ['no other input', '0a 1b', 'a c', /input 2 is c, and was b\..*--force/],
  ['not fewer inputs', '2c 0a', 'a b', /there are 2, and it has results of at least 3\..*--force/],
])('a job that continues accepts %s', async (_what, earlier, now, refusal) => {
  const path = join(folder, 'results.jsonl');
  const records = earlier.split(' ').map(([index, input]) => ({ index: Number(index), input, attempts: 1 }));
  const lines = records.map((record) => `${JSON.stringify({ status: 'fulfilled', ...record })}\n`);
  await writeFile(path, lines.join(''));
  const list = join(folder, 'list.txt');
  await writeFile(list, now.replaceAll(' ', '\n'));
  const opening = openInputs({ inputs: list }, SIGNAL, await readInputCheck(path));
  if (refusal) await expect(opening).rejects.toThrow(refusal);
  else (await opening)[Symbol.dispose]();
});

it('a job of a queue that continues refuses fewer inputs than its file of results has', async () => {
  const known = new KnownInputs('out.jsonl');
  known.load({ status: 'fulfilled', index: 2, input: 'c', attempts: 1, sessionId: 's', value: 1 }, 0);
  const list = join(folder, 'list.txt');
  await writeFile(list, 'a\nb\n');
  const refusal = 'These are not the inputs of out.jsonl: there are 2, and it has results of at least 3.';
  await expect(openInputs({ inputs: list }, SIGNAL, known)).rejects.toThrow(refusal);
});

it('a row of a table without a url is refused before the job if hosts have limits, and its columns are named', async () => {
  const path = join(folder, 'links.csv');
  await writeFile(path, 'sku,link\n1,https://a.test\n');
  const open = (limits: Parameters<typeof withHosts>[1]) =>
    openInputs({ inputs: path }, SIGNAL, withHosts(ANY_INPUT, limits));
  await expect(open({ hostDelay: 100 })).rejects.toThrow(
    /Input 0 .* has no url \(it has sku, link\), .*hostOf/,
  );
  for (const limits of [{}, { hostDelay: 100, hostOf: () => 'a' }]) (await open(limits))[Symbol.dispose]();
});

it('a file of inputs that is missing "does not exist"', async () => {
  const opening = openInputs({ inputs: join(folder, 'none.csv') }, SIGNAL, ANY_INPUT);
  await expect(opening).rejects.toThrow(/the file .*none\.csv does not exist\.$/);
});

it('a job that continues compares inputs that are no text by their value, and shows them as JSON', async () => {
  const path = join(folder, 'results.jsonl');
  const input = { url: 'https://a.test', toString: 1 };
  await writeFile(path, `${JSON.stringify({ status: 'fulfilled', index: 0, input })}\n`);
  const check = await readInputCheck(path);
  expect(() => check.check({ ...input }, 0)).not.toThrow();
  const now = { url: 'https://b.test' };
  const message = 'input 1 is {"url":"https://b.test"}, and was {"url":"https://a.test","toString":1}';
  expect(() => check.check(now, 0)).toThrow(message);
  const known = new KnownInputs('the queue q');
  known.check(input, 0);
  expect(() => known.check({ ...input }, 0)).not.toThrow();
  expect(() => known.check(now, 0)).toThrow('input 1 is {"url":"https://b.test"}, and was another one');
});

it('the CSV has a column for each field of the inputs, before those of the results', async () => {
  const [checkpoint, out] = [join(folder, 'out.csv.jsonl'), join(folder, 'out.csv')];
  const records = [{ url: 'a', 'name, of it': 'x' }, { url: 'b' }, 'text'].map((input, index) =>
    JSON.stringify({ status: 'fulfilled', index, input, attempts: 1, value: { price: index } }),
  );
  await writeFile(checkpoint, `${records.join('\n')}\n`);
  await writeCsv(checkpoint, out);
  expect((await readFile(out, 'utf8')).trimEnd().split('\r\n')).toEqual([
    'index,input.url,"input.name, of it",input,status,attempts,sessionId,value.price',
    '0,a,x,,fulfilled,1,,0',
    '1,b,,,fulfilled,1,,1',
    '2,,,text,fulfilled,1,,2',
  ]);
});

it('a text of a page is no formula in the CSV, and numbers stay numbers', async () => {
  const [checkpoint, out] = [join(folder, 'out.csv.jsonl'), join(folder, 'out.csv')];
  const value = {
    a: '=HYPERLINK("x")',
    b: '@x',
    c: '-5',
    d: -5,
    e: '+49 30 1',
    f: '\tx',
    g: '-1+cmd',
    h: 'a=b',
    i: '\n=1',
    // Some spreadsheets take these for the same signs.
    j: '＝1+1',
  };
  await writeFile(checkpoint, `${JSON.stringify({ status: 'fulfilled', index: 0, input: '\r=1', value })}\n`);
  await writeCsv(checkpoint, out);
  const [, row] = /\r\n([^]*)\r\n$/.exec(await readFile(out, 'utf8'))!;
  expect(row).toBe(
    `0,"'\r=1",fulfilled,,,"'=HYPERLINK(""x"")",'@x,-5,-5,'+49 30 1,'\tx,'-1+cmd,a=b,"'\n=1",'＝1+1`,
  );
});

it.runIf(existsSync('/dev/full'))('an error of a full disk names the file', async () => {
  const file = await open('/dev/full', 'a');
  onTestFinished(() => file.close());
  const writing = namingFile('/data/out.csv', () => file.writeFile('text'));
  await expect(writing).rejects.toThrow("ENOSPC: no space left on device, write '/data/out.csv'");
});

it('the rows of the CSV are in the order of the inputs, also of equal indexes, and other than ASCII', async () => {
  const [checkpoint, out] = [join(folder, 'out.csv.jsonl'), join(folder, 'out.csv')];
  const order = [10, 2, 9, 0, 2, 1];
  const lines = order.map((index, at) => ({
    status: 'fulfilled',
    index,
    input: `ü${at}`,
    attempts: 1,
    value: at,
  }));
  await writeFile(checkpoint, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await writeCsv(checkpoint, out);
  const rows = (await readFile(out, 'utf8')).trimEnd().split('\r\n').slice(1);
  expect(rows.map((row) => row.split(',').slice(0, 2).join(' '))).toEqual([
    '0 ü3',
    '1 ü5',
    '2 ü1',
    '2 ü4',
    '9 ü2',
    '10 ü0',
  ]);
});

/** The options of the library for these flags. */
function settings(read: typeof settingsOf, ...flags: string[]) {
  const command = addTaskOptions(new Command()).parse(flags, { from: 'user' });
  const { signal } = new AbortController();
  using report = new MapReport(undefined, { signal, text: '' });
  const {
    onEvent: _onEvent,
    onProgress: _onProgress,
    ...options
  } = read(command.opts<TaskCommandOptions>(), report);
  return options;
}

const DEFAULTS = {
  concurrency: 4,
  pagesPerLease: 1,
  isolation: 'context',
  protocol: 'cdp',
  release: 'auto',
  replays: 'list',
  acquireTimeout: 300_000,
  unreachableTimeout: 30_000,
  pollTimeout: 5000,
};

it.each<[flags: string, options: object]>([
  ['', {}],
  [
    '--concurrency 2 --pages-per-lease 3 --tasks-per-lease 4 --task-timeout 5s',
    { concurrency: 2, pagesPerLease: 3, tasksPerLease: 4, taskTimeout: 5000 },
  ],
  ['--host-concurrency 1 --host-delay 100ms', { hostConcurrency: 1, hostDelay: 100 }],
  ['--isolation none --protocol bidi', { isolation: 'none', protocol: 'bidi' }],
  [
    '--release destroy --replays off --release-on-crash',
    { release: 'destroy', replays: 'off', releaseOnCrash: true },
  ],
  ['--name job --tag a=1 --tag b=2', { name: 'job', tags: { a: '1', b: '2' } }],
  [
    '--start-url https://a.test --expose-network a.test --allow-hosts b.test',
    { startUrl: 'https://a.test', exposeNetwork: 'a.test', allowedHosts: 'b.test' },
  ],
  ['--acquire-timeout 1m --unreachable-timeout 1s', { acquireTimeout: 60_000, unreachableTimeout: 1000 }],
  ['--artifacts a', { artifacts: { folder: 'a', on: 'failure', trace: false } }],
  ['--artifacts a --artifacts-on always --trace', { artifacts: { folder: 'a', on: 'always', trace: true } }],
])('the flags "%s" set the options of the library', (flags, options) => {
  expect(settings(settingsOf, ...flags.split(' ').filter(Boolean))).toEqual({ ...DEFAULTS, ...options });
});

it('a worker waits for a browser as long as its flag says, and releases it also after SIGKILL', () => {
  const flags = ['--acquire-timeout', '2s', '--worker-name', 'one'];
  const worker = { ...DEFAULTS, acquireTimeout: 2000, workerName: 'one', releaseOnCrash: true };
  expect(settings(workSettingsOf, ...flags)).toEqual(worker);
});

it('a worker says how long it waits for a browser, once it has waited a while', () => {
  const command = addTaskOptions(new Command(), { acquireTimeout: '1m' }).parse([], { from: 'user' });
  using report = new MapReport(undefined, { signal: SIGNAL, text: '' });
  const note = vi.spyOn(report, 'note').mockReturnValue();
  const { onEvent } = workSettingsOf(command.opts<TaskCommandOptions>(), report);
  for (const waited of [1, 2900, 3000, 8000])
    onEvent!({ type: 'waiting', pool: 'shop', run: 1, elapsed: 1, attempt: 1, waited });
  expect(note.mock.calls).toEqual([['No browser is free in pool shop. Retrying for up to 60 s in total.']]);
});

it('the exports of a script are the task and options of the job', async () => {
  const path = join(folder, 'task.mjs');
  await writeFile(
    path,
    `export default () => 'value';
    export const shouldRetry = () => false;
    export const contextOptions = { locale: 'de' };
    export const hostOf = () => 'host';
    export const other = 1;`,
  );
  const { task, options } = await loadScript(path);
  expect(task({})).toBe('value');
  expect(options).toEqual({
    shouldRetry: expect.any(Function) as unknown,
    contextOptions: { locale: 'de' },
    hostOf: expect.any(Function) as unknown,
  });
});
