import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { appendFile, chmod, mkdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CheckpointError, readCheckpoint } from '../../src/index.js';
import { collect, MapBench } from './support.js';

let files = 0;
let path: string;

beforeEach(() => {
  path = join(tmpdir(), `outcomes-${++files}.jsonl`);
});
afterEach(() => rm(path, { force: true, recursive: true }));

async function records(): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const record of readCheckpoint(path)) all.push(record);
  return all;
}

/** Status, index and input of each line. */
async function lines(): Promise<string[]> {
  return (await records()).map((record) => {
    const { status, index, input } = record as { status: string; index: number; input: string };
    return `${status} ${index} ${input}`;
  });
}

const failOn = (bad: string) => (task: { input: string }) => {
  if (task.input === bad) throw Object.assign(new TypeError('no good'), { code: 'ERR_BAD' });
  return { length: task.input.length };
};

it('writes each outcome as a line of JSON, with only the id of the session', async () => {
  await using bench = await MapBench.start();
  const options = { checkpoint: path, concurrency: 1 };
  await collect(bench.map(['a', 'bb', 'ccc'], failOn('bb'), options));
  const lines = (await readFile(path, 'utf8')).trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    { status: 'fulfilled', index: 0, input: 'a', attempts: 1, sessionId: 's1', value: { length: 1 } },
    {
      status: 'rejected',
      index: 1,
      input: 'bb',
      attempts: 1,
      sessionId: 's1',
      reason: { name: 'TypeError', code: 'ERR_BAD', message: 'no good' },
    },
    { status: 'fulfilled', index: 2, input: 'ccc', attempts: 1, sessionId: 's1', value: { length: 3 } },
  ]);
  expect(await records()).toEqual(lines.map((line) => JSON.parse(line) as unknown));
});

it('writes the outcome to the file before the loop receives it', async () => {
  await using bench = await MapBench.start();
  for await (const { input } of bench.map(['a', 'b', 'c'], () => 1, { checkpoint: path })) {
    expect((await records()).map((record) => (record as { input: string }).input)).toContain(input);
  }
});

it('resumes a job: inputs with a stored outcome are neither run nor yielded again', async () => {
  await using bench = await MapBench.start();
  const inputs = ['a', 'b', 'c', 'd', 'e'];
  const ran: string[] = [];
  const task = ({ input }: { input: string }) => void ran.push(input);
  const job = () => bench.map(inputs, task, { checkpoint: path, concurrency: 1 });
  for await (const { index } of job()) if (index === 1) break;
  const before = (await records()).length;
  expect(await collect(job())).toHaveLength(5 - before);
  expect((await records()).map((record) => (record as { input: string }).input).toSorted()).toEqual(inputs);
  expect(await collect(job())).toEqual([]);
});

it('compares inputs by value, and skips one of several equal inputs per stored outcome', async () => {
  await using bench = await MapBench.start();
  const job = (inputs: object[]) =>
    collect(bench.map(inputs, () => 1, { checkpoint: path, concurrency: 1, ordered: true }));
  await job([{ url: 'a' }, { url: 'b' }]);
  const outcomes = await job([{ url: 'new' }, { url: 'b' }, { url: 'a' }, { url: 'b' }]);
  expect(outcomes).toMatchObject([
    { index: 0, input: { url: 'new' } },
    { index: 3, input: { url: 'b' } },
  ]);
});

it('runs failed inputs again, unless retryRejected is false', async () => {
  await using bench = await MapBench.start();
  const job = (bad: string, retryRejected?: boolean) =>
    collect(bench.map(['a', 'b'], failOn(bad), { checkpoint: { path, retryRejected }, concurrency: 1 }));
  await job('b');
  expect(await job('', false)).toEqual([]);
  expect(await job('')).toMatchObject([{ input: 'b', index: 1, status: 'fulfilled' }]);
  expect(await job('')).toEqual([]);
});

it('has one line per input after a job that ran failed inputs again, also if they moved', async () => {
  await using bench = await MapBench.start();
  const job = (inputs: string[], bad: string) =>
    collect(bench.map(inputs, failOn(bad), { checkpoint: path, concurrency: 1 }));
  await job(['a', 'b', 'c', 'b'], 'b');
  await chmod(path, 0o640);
  await job(['a', 'b', 'c', 'b'], '');
  expect(await lines()).toEqual(['fulfilled 0 a', 'fulfilled 2 c', 'fulfilled 1 b', 'fulfilled 3 b']);
  expect([statSync(path).mode & 0o777, existsSync(`${path}.new`)]).toEqual([0o640, false]);
  await job(['new', 'a', 'b', 'c', 'b'], 'new');
  await job(['a', 'b', 'new', 'c', 'b'], '');
  expect((await lines()).toSorted()).toEqual([
    'fulfilled 0 a',
    'fulfilled 1 b',
    'fulfilled 2 c',
    'fulfilled 2 new',
    'fulfilled 3 b',
  ]);
  expect(await job(['a', 'b', 'new', 'c', 'b'], 'none')).toEqual([]);
});

it('keeps the outcome of a failed input that a resumed job does not reach', async () => {
  await using bench = await MapBench.start();
  const job = (bad: string) =>
    bench.map(['a', 'b', 'c'], failOn(bad), { checkpoint: path, concurrency: 1, retries: 0 });
  await collect(job('c'));
  const signal = AbortSignal.abort(new Error('before the first task'));
  const aborted = bench.map(['a', 'b', 'c'], failOn(''), { checkpoint: path, signal });
  await expect(collect(aborted)).rejects.toThrow('before the first task');
  expect(await lines()).toEqual(['fulfilled 0 a', 'fulfilled 1 b', 'rejected 2 c']);
});

it('runs each of several equal inputs once, also when one of them has failed', async () => {
  await using bench = await MapBench.start();
  let ran = 0;
  const task = () => {
    if (++ran === 1) throw new Error('the first one');
  };
  const job = () => collect(bench.map(['a', 'a', 'a'], task, { checkpoint: path, concurrency: 1 }));
  await job();
  expect(await job()).toMatchObject([{ index: 0, status: 'fulfilled' }]);
  expect(await job()).toEqual([]);
  expect(await lines()).toEqual(['fulfilled 1 a', 'fulfilled 2 a', 'fulfilled 0 a']);
});

it('contains no colors and no control characters of an error or a value', async () => {
  await using bench = await MapBench.start();
  const task = ({ input }: { input: string }) => {
    if (input === 'bad') throw new Error('\u001B[2mCall log:\u001B[22m \u009B2J');
    return 'a\u009B2J\u007F';
  };
  await collect(bench.map(['bad', 'good'], task, { checkpoint: path, concurrency: 1 }));
  expect(await readFile(path, 'utf8')).toMatch(/^[\x20-\x7e\n]+$/);
  expect(await records()).toMatchObject([
    { reason: { message: 'Call log: \u009B2J' } },
    { value: 'a\u009B2J\u007F' },
  ]);
});

it('removes an incomplete line that a killed job left, and runs its input again', async () => {
  await using bench = await MapBench.start();
  const job = () => collect(bench.map(['ä', 'b'], () => 1, { checkpoint: path, concurrency: 1 }));
  await job();
  const whole = await readFile(path);
  await writeFile(path, whole.subarray(0, -5));
  expect((await records()).length).toBe(1);
  expect(await job()).toMatchObject([{ input: 'b' }]);
  expect((await records()).map((record) => (record as { input: string }).input)).toEqual(['ä', 'b']);
});

it('rejects a file that is not a checkpoint, and does not change it', async () => {
  await using bench = await MapBench.start();
  await appendFile(path, '{"index":0}\nmy notes\n');
  const outcomes = collect(bench.map(['a'], () => 1, { checkpoint: path }));
  await expect(outcomes).rejects.toBeInstanceOf(CheckpointError);
  await expect(outcomes).rejects.toThrow(/line 1/);
  expect(await readFile(path, 'utf8')).toBe('{"index":0}\nmy notes\n');
  expect(bench.granted).toEqual([]);
});

it('ends the job with CheckpointError when the file cannot be opened', async () => {
  await using bench = await MapBench.start();
  const nowhere = join(path, 'nowhere');
  await expect(collect(bench.map(['a'], () => 1, { checkpoint: nowhere }))).rejects.toMatchObject({
    code: 'ERR_CHECKPOINT',
    message: /cannot be opened: ENOENT/,
    cause: { code: 'ENOENT' },
  });
});

it('refuses a second job on the same file, which loses nothing by it', async () => {
  await using bench = await MapBench.start();
  const first = bench.map(['a', 'b'], () => 1, { checkpoint: path, concurrency: 1 })[Symbol.asyncIterator]();
  await first.next();
  const second = collect(bench.map(['c'], () => 1, { checkpoint: path }));
  await expect(second).rejects.toMatchObject({
    code: 'ERR_CHECKPOINT',
    message: new RegExp(`in use by process ${process.pid} on .*delete .*outcomes.jsonl.lock`, 's'),
  });
  while (!(await first.next()).done);
  expect(await records()).toMatchObject([{ input: 'a' }, { input: 'b' }]);
  expect(existsSync(`${path}.lock`)).toBe(false);
});

it.each([
  ['no longer runs', () => ({ pid: spawnSync(process.execPath, ['-e', '']).pid, started: 1 })],
  ['had the id of this process', () => ({ pid: process.pid, started: 1 })],
])('replaces the lock of a process that %s', async (_what, holder) => {
  await using bench = await MapBench.start();
  await writeFile(`${path}.lock`, JSON.stringify({ host: hostname(), ...holder() }));
  await collect(bench.map(['a'], () => 1, { checkpoint: path }));
  expect(await records()).toMatchObject([{ input: 'a' }]);
  expect(existsSync(`${path}.lock`)).toBe(false);
});

it.each([
  ['a process of another machine', JSON.stringify({ pid: 1, host: 'elsewhere', started: 1 })],
  ['no named process', 'not JSON'],
])('respects the lock of %s', async (_what, text) => {
  await using bench = await MapBench.start();
  await writeFile(`${path}.lock`, text);
  await expect(collect(bench.map(['a'], () => 1, { checkpoint: path }))).rejects.toThrow(/is in use by/);
  expect(bench.granted).toEqual([]);
  await rm(`${path}.lock`);
});

it('respects a lock that it cannot read', async () => {
  await using bench = await MapBench.start();
  await mkdir(`${path}.lock`);
  await expect(collect(bench.map(['a'], () => 1, { checkpoint: path }))).rejects.toThrow(
    /is in use by another job/,
  );
  await rmdir(`${path}.lock`);
});

it('is readable for its owner only, and so is its lock', async () => {
  await using bench = await MapBench.start();
  const modes: number[] = [];
  const task = () => {
    for (const file of [path, `${path}.lock`]) modes.push(statSync(file).mode & 0o777);
  };
  await collect(bench.map(['a'], task, { checkpoint: path }));
  expect(modes).toEqual([0o600, 0o600]);
});

it('keeps all outcomes when a line has an invalid UTF-8 byte, however often it is resumed', async () => {
  await using bench = await MapBench.start();
  const job = () => collect(bench.map(['a', 'b', 'c'], (task) => task.input, { checkpoint: path }));
  await job();
  const bytes = await readFile(path);
  bytes[bytes.indexOf('"value":"a"') + '"value":"'.length] = 0xff;
  await writeFile(path, bytes);
  for (let resume = 0; resume < 3; resume++) expect(await job()).toEqual([]);
  expect(await readFile(path)).toEqual(bytes);
});

it.each(['', {}, { path: 'a', resume: true }, 1])('rejects %j as checkpoint', async (checkpoint) => {
  await using bench = await MapBench.start();
  expect(() => bench.map([], () => {}, { checkpoint: checkpoint as string })).toThrow(
    expect.objectContaining({ name: 'InvalidOptionError', option: 'checkpoint' }),
  );
});
