import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, statSync } from 'node:fs';
import {
  chmod,
  mkdir,
  mkdtemp,
  open,
  readFile,
  rename,
  rm,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { devNull, hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, onTestFinished, vi } from 'vitest';
import { CheckpointError, readCheckpoint } from '../../src/index.js';
import { useFakeClock, useRealClock } from '../support/fake-clock.js';
import { it } from './it.js';
import { gate, type MapBench } from './support.js';

let files = 0;
let path: string;

beforeEach(() => {
  path = join(tmpdir(), `outcomes-${++files}.jsonl`);
});
afterEach(async () => {
  for (const file of [path, `${path}.lock`]) await rm(file, { force: true, recursive: true });
});

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

/** Runs the inputs one after the other, with the checkpoint. One of them may fail. */
const run = (bench: MapBench, inputs: string[], bad = '') =>
  bench.run(inputs, failOn(bad), { checkpoint: path, concurrency: 1 });

it('writes each outcome as a line of JSON, with only the id of the session', async ({ bench }) => {
  await run(bench, ['a', 'bb', 'ccc'], 'bb');
  const written = (await readFile(path, 'utf8')).trimEnd().split('\n');
  const parsed = written.map((line) => JSON.parse(line) as unknown);
  const facts = { attempts: 1, sessionId: 's1' };
  const reason = { name: 'TypeError', code: 'ERR_BAD', message: 'no good' };
  expect(parsed).toEqual([
    { status: 'fulfilled', index: 0, input: 'a', ...facts, value: { length: 1 } },
    { status: 'rejected', index: 1, input: 'bb', ...facts, reason },
    { status: 'fulfilled', index: 2, input: 'ccc', ...facts, value: { length: 3 } },
  ]);
  expect(await records()).toEqual(parsed);
});

it('writes the outcome to the file before the loop receives it', async ({ bench }) => {
  for await (const { input, index } of bench.map(['a', 'b', 'c'], () => 1, { checkpoint: path }))
    expect(await lines()).toContain(`fulfilled ${index} ${input}`);
});

it('resumes a job: inputs with a stored outcome are neither run nor yielded again', async ({ bench }) => {
  const inputs = ['a', 'b', 'c', 'd', 'e'];
  const ran: string[] = [];
  const task = ({ input }: { input: string }) => void ran.push(input);
  const job = () => bench.map(inputs, task, { checkpoint: path, concurrency: 1 });
  for await (const { index } of job()) if (index === 1) break;
  const before = (await records()).length;
  ran.length = 0;
  let yielded = 0;
  for await (const { status } of job()) if (status === 'fulfilled') yielded++;
  expect([yielded, ran.length]).toEqual([5 - before, 5 - before]);
  expect((await lines()).toSorted()).toEqual(inputs.map((input, index) => `fulfilled ${index} ${input}`));
  expect(await run(bench, inputs)).toEqual([]);
});

it('compares inputs by value, and skips one of several equal inputs per stored outcome', async ({
  bench,
}) => {
  const job = (...urls: string[]) => {
    const options = { checkpoint: path, concurrency: 1, ordered: true };
    return bench.run(
      urls.map((url) => ({ url })),
      () => 1,
      options,
    );
  };
  await job('a', 'b');
  expect(await job('new', 'b', 'a', 'b')).toMatchObject([
    { index: 0, input: { url: 'new' } },
    { index: 3, input: { url: 'b' } },
  ]);
});

it('runs failed inputs again, unless retryRejected is false', async ({ bench }) => {
  await run(bench, ['a', 'b'], 'b');
  const checkpoint = { path, retryRejected: false };
  expect(await bench.run(['a', 'b'], failOn(''), { checkpoint })).toEqual([]);
  expect(await run(bench, ['a', 'b'])).toMatchObject([{ input: 'b', index: 1, status: 'fulfilled' }]);
  expect(await run(bench, ['a', 'b'])).toEqual([]);
});

it('has one line per input after a job that ran failed inputs again, also if they moved', async ({
  bench,
}) => {
  await run(bench, ['a', 'b', 'c', 'b'], 'b');
  await chmod(path, 0o640);
  await run(bench, ['a', 'b', 'c', 'b']);
  expect(await lines()).toEqual(['fulfilled 0 a', 'fulfilled 2 c', 'fulfilled 1 b', 'fulfilled 3 b']);
  expect([statSync(path).mode & 0o777, existsSync(`${path}.new`)]).toEqual([0o640, false]);
  await run(bench, ['new', 'a', 'b', 'c', 'b'], 'new');
  await run(bench, ['a', 'b', 'new', 'c', 'b']);
  const whole = ['0 a', '1 b', '2 c', '2 new', '3 b'].map((line) => `fulfilled ${line}`);
  expect((await lines()).toSorted()).toEqual(whole);
  expect(await run(bench, ['a', 'b', 'new', 'c', 'b'], 'none')).toEqual([]);
});

it('keeps the outcome of a failed input that a resumed job does not reach', async ({ bench }) => {
  await run(bench, ['a', 'b', 'c'], 'c');
  const signal = AbortSignal.abort(new Error('before the first task'));
  const aborted = bench.run(['a', 'b', 'c'], failOn(''), { checkpoint: path, signal });
  await expect(aborted).rejects.toThrow('before the first task');
  expect(await lines()).toEqual(['fulfilled 0 a', 'fulfilled 1 b', 'rejected 2 c']);
});

it('runs each of several equal inputs once, also when one of them has failed', async ({ bench }) => {
  let ran = 0;
  const task = () => {
    if (++ran === 1) throw new Error('the first one');
  };
  const job = () => bench.run(['a', 'a', 'a'], task, { checkpoint: path, concurrency: 1 });
  await job();
  expect(await job()).toMatchObject([{ index: 0, status: 'fulfilled' }]);
  expect(await job()).toEqual([]);
  expect(await lines()).toEqual(['fulfilled 1 a', 'fulfilled 2 a', 'fulfilled 0 a']);
});

it('contains no colors and no control characters of an error or a value', async ({ bench }) => {
  const task = ({ input }: { input: string }) => {
    if (input === 'bad') throw new Error('\u001B[2mCall log:\u001B[22m \u009B2J');
    return 'a\u009B2J\u007F';
  };
  await bench.run(['bad', 'good'], task, { checkpoint: path, concurrency: 1 });
  expect(await readFile(path, 'utf8')).toMatch(/^[\x20-\x7e\n]+$/);
  expect(await records()).toMatchObject([
    { reason: { message: 'Call log: \u009B2J' } },
    { value: 'a\u009B2J\u007F' },
  ]);
});

it('stores a name and a code of bounded length, which a page can choose', async ({ bench }) => {
  const fails = () => {
    throw Object.assign(new Error('failed'), { name: 'N'.repeat(1e6), code: 'C'.repeat(1e6) });
  };
  await bench.run(['a'], fails, { checkpoint: path });
  const { length } = await readFile(path, 'utf8');
  expect(length).toBeLessThan(1000);
});

it('removes an incomplete line that a killed job left, and runs its input again', async ({ bench }) => {
  await run(bench, ['ä', 'b']);
  await writeFile(path, (await readFile(path)).subarray(0, -5));
  expect(await lines()).toEqual(['fulfilled 0 ä']);
  expect(await run(bench, ['ä', 'b'])).toMatchObject([{ input: 'b' }]);
  expect(await lines()).toEqual(['fulfilled 0 ä', 'fulfilled 1 b']);
});

it('keeps all outcomes when a line has an invalid UTF-8 byte, however often it is resumed', async ({
  bench,
}) => {
  const job = () => bench.run(['a', 'b', 'c'], (task) => task.input, { checkpoint: path });
  await job();
  const bytes = await readFile(path);
  bytes[bytes.indexOf('"value":"a"') + '"value":"'.length] = 0xff;
  await writeFile(path, bytes);
  for (let resume = 0; resume < 3; resume++) expect(await job()).toEqual([]);
  expect(await readFile(path)).toEqual(bytes);
});

it.for([
  ['two lines', '{"index":0}\nmy notes\n', /line 1: this is not an outcome/],
  ['no line break', '{"name":"my-package"}', /this is not an outcome/],
] as const)(
  'rejects a file of %s that is not a checkpoint, and does not change it',
  async (file, { bench }) => {
    const [, content, message] = file;
    await writeFile(path, content);
    const outcomes = run(bench, ['a']);
    await expect(outcomes).rejects.toBeInstanceOf(CheckpointError);
    await expect(outcomes).rejects.toThrow(message);
    expect(await readFile(path, 'utf8')).toBe(content);
    expect(bench.granted).toEqual([]);
  },
);

const CYCLIC: Record<string, unknown> = { url: 'a' };
CYCLIC['self'] = CYCLIC;
const UNREADABLE = {
  get url() {
    throw new Error('no url');
  },
};

it.for<[input: unknown, message: string]>([
  [1n, 'input is a bigint'],
  [{ ids: [1n] }, 'input.ids[0] is a bigint'],
  [CYCLIC, 'input.self is an object that contains itself'],
  [{ url: 'a', parse: () => {} }, 'input.parse is a function'],
  [Symbol('a'), 'input is a symbol'],
  [new Map([['url', 'a']]), 'input is an object of class Map'],
  [{ urls: new Set(['a']) }, 'input.urls is an object of class Set'],
  [/a/, 'input is an object of class RegExp'],
  [new Date(Number.NaN), 'input is an invalid Date'],
  [{ price: Number.NaN }, 'input.price is NaN'],
  [['a', undefined], 'input[1] is undefined'],
  [{ body: new Uint8Array(1) }, 'input.body is an object of class Uint8Array'],
  [Promise.resolve('a'), 'input is a promise'],
  [UNREADABLE, 'no url'],
])('refuses an input that JSON would store as something else (%#)', async ([input, message], { bench }) => {
  const refusal = { code: 'ERR_INVALID_OPTION', option: 'inputs' };
  const text = `Input 1 is not data that JSON can hold: ${message}.`;
  const expected = expect.objectContaining({ ...refusal, message: expect.stringContaining(text) as string });
  const map = (inputs: Iterable<unknown>) => bench.map(inputs, () => 1, { checkpoint: path });
  expect(() => map(['a', input])).toThrow(expected);
  expect(() => map(new Set(['a', input]))).toThrow(expected);
  expect(bench.granted).toEqual([]);
  // What is not known before ends the job, and no outcome is lost.
  const outcomes = map(['a', input, 'b'].values());
  expect(await outcomes.next()).toMatchObject({ value: { status: 'fulfilled', input: 'a' } });
  await expect(outcomes.next()).rejects.toEqual(expected);
  expect(await lines()).toEqual(['fulfilled 0 a']);
});

it('finds an input again that JSON stores in another form, or that its task has changed', async ({
  bench,
}) => {
  const inputs = () => [
    undefined,
    null,
    new Date(0),
    new URL('https://a.test'),
    { url: 'a', at: undefined },
    ['b'],
  ];
  const task = ({ input }: { input: unknown }) => {
    if (input instanceof Date) input.setTime(1);
    else if (input instanceof URL) input.hash = 'b';
    else if (Array.isArray(input)) input.push(input);
    else if (input) Object.assign(input, { visited: true, size: 1n });
  };
  expect(await bench.run(inputs(), task, { checkpoint: path })).toHaveLength(6);
  expect(await bench.run(inputs().toReversed(), task, { checkpoint: path })).toEqual([]);
});

it('refuses an input and a value with a key that readers of the file leave out', async ({ bench }) => {
  const data: unknown = JSON.parse('{"a":{"__proto__":{"b":1}}}');
  expect(() => bench.map([data], () => 1, { checkpoint: path })).toThrow(
    "Input 0 is not data that JSON can hold: input.a is an object with a key '__proto__'.",
  );
  await bench.run(['a'], () => data, { checkpoint: path });
  expect(await records()).toMatchObject([{ status: 'rejected', reason: { name: 'TaskResultError' } }]);
});

it('continues a job that was killed while it wrote its first line', async ({ bench }) => {
  for (const length of [0, 1, 40]) {
    await writeFile(path, '{"status":"fulfilled","index":0,"input":"a"'.slice(0, length));
    expect(await run(bench, ['a'])).toHaveLength(1);
    expect(await lines()).toEqual(['fulfilled 0 a']);
  }
});

const MARK = '\uFEFF';
it.for<[edit: string, change: (text: string) => string]>([
  ['a byte order mark', (text) => MARK + text],
  ['blank lines at the end and between', (text) => `\n${text.replaceAll('\n', '\n \n\t\n')}\n\n`],
  ['the line breaks of Windows', (text) => MARK + text.replaceAll('\n', '\r\n\r\n')],
  ['no line break at the end', (text) => text.trimEnd()],
  ['spaces at the end, without a line break', (text) => `${text}  `],
])('continues from a file that an editor has saved with %s', async ([, change], { bench }) => {
  await run(bench, ['a', 'ä', 'c'], 'ä');
  const before = await lines();
  await writeFile(path, change(await readFile(path, 'utf8')));
  expect(await lines()).toEqual(before);
  expect(await run(bench, ['a', 'ä', 'c', 'd'])).toMatchObject([{ input: 'ä' }, { input: 'd' }]);
  const after = ['fulfilled 0 a', 'fulfilled 2 c', 'fulfilled 1 ä', 'fulfilled 3 d'];
  expect(await lines()).toEqual(after);
  expect(await run(bench, ['a', 'ä', 'c', 'd'])).toEqual([]);
});

it.for([MARK, '\n', ' \r\n\r\n', `${MARK} `])(
  'begins with a file that an editor has saved without any outcome (%j)',
  async (content, { bench }) => {
    await writeFile(path, content);
    expect(await run(bench, ['a'])).toHaveLength(1);
    expect(await lines()).toEqual(['fulfilled 0 a']);
    expect(await run(bench, ['a'])).toEqual([]);
  },
);

it.for(['\uFEFF', ''])(
  'refuses a file in UTF-16 with what to do, and does not change it (byte order mark %j)',
  async (mark, { bench }) => {
    await run(bench, ['a']);
    const content = Buffer.from(mark + (await readFile(path, 'utf8')), 'utf16le');
    await writeFile(path, content);
    for (const big of [false, true]) {
      if (big) content.swap16();
      await writeFile(path, content);
      await expect(run(bench, ['a', 'b'])).rejects.toThrow(/UTF-16.*Save it as UTF-8/);
      await expect(records()).rejects.toBeInstanceOf(CheckpointError);
      expect(await readFile(path)).toEqual(content);
    }
  },
);

it.for([
  [
    'of another kind, without reading it all',
    'x',
    64_000_000_000,
    /this is not an outcome of mapPooledBrowsers/,
  ],
  [
    'with a longer line than a text can be',
    '{"status":"',
    600_000_000,
    /the line at byte 0 has more than 500 MiB/,
  ],
] as const)('refuses a file %s, and does not change it', async ([, content, size, message], { bench }) => {
  await writeFile(path, content);
  await truncate(path, size);
  const refusal = { code: 'ERR_CHECKPOINT', message };
  await expect(run(bench, ['a'])).rejects.toMatchObject(refusal);
  // Both read lines with one function: half a gigabyte is read once.
  if (size > 1e9) await expect(records()).rejects.toMatchObject(refusal);
  expect(statSync(path).size).toBe(size);
});

it('refuses a failed outcome without the reason that its readers expect', async ({ bench }) => {
  for (const reason of ['', ',"reason":null', ',"reason":"no good"', ',"reason":{"name":"Error"}']) {
    await writeFile(path, `{"status":"rejected","index":0,"input":"a","attempts":1${reason}}\n`);
    await expect(records()).rejects.toThrow(/line 1: this is not an outcome/);
    await expect(run(bench, ['a'])).rejects.toThrow(/line 1: this is not an outcome/);
  }
});

it('rejects what is not a file', async ({ bench }) => {
  await mkdir(path);
  await expect(records()).rejects.toThrow(CheckpointError);
  const device = bench.run(['a'], () => 1, { checkpoint: devNull });
  await expect(device).rejects.toThrow('cannot be opened: it is not a file');
});

it('ends the job with CheckpointError when the file cannot be opened', async ({ bench }) => {
  const nowhere = join(path, 'nowhere');
  await expect(bench.run(['a'], () => 1, { checkpoint: nowhere })).rejects.toMatchObject({
    code: 'ERR_CHECKPOINT',
    message: /cannot be opened: ENOENT/,
    cause: { code: 'ENOENT' },
  });
});

it('refuses a second job on the same file or a link to it, which loses nothing by it', async ({ bench }) => {
  // The first job must not end before the others begin.
  let finish!: (value: number) => void;
  const last = new Promise<number>((resolve) => (finish = resolve));
  const task = ({ input }: { input: string }) => (input === 'a' ? 1 : last);
  const first = bench.map(['a', 'b'], task, { checkpoint: path, concurrency: 1 });
  await first.next();
  await expect(run(bench, ['c'])).rejects.toMatchObject({
    code: 'ERR_CHECKPOINT',
    message: new RegExp(`in use by process ${process.pid} on .*delete .*outcomes-${files}.jsonl.lock`, 's'),
  });
  const link = `${path}.link`;
  await symlink(path, link);
  onTestFinished(() => rm(link));
  await expect(bench.run(['c'], () => 1, { checkpoint: link })).rejects.toThrow('in use by process');
  finish(1);
  while (!(await first.next()).done);
  expect(await lines()).toEqual(['fulfilled 0 a', 'fulfilled 1 b']);
  expect(existsSync(`${path}.lock`)).toBe(false);
});

describe('a lock that another job has left', () => {
  const HERE = { pid: process.pid, host: hostname(), token: 'of another job' };
  const lockWith = (holder: object | string) =>
    writeFile(`${path}.lock`, typeof holder === 'string' ? holder : JSON.stringify(holder));

  /** The facts by which a process of this system is known. */
  async function ownLock(bench: MapBench): Promise<{ system?: string; started?: string }> {
    const task = () => readFile(`${path}.lock`, 'utf8');
    const [outcome] = await bench.run(['own'], task, { checkpoint: path });
    await rm(path);
    return JSON.parse((outcome as { value: string }).value) as { system?: string; started?: string };
  }

  /** Runs a job while the time of the lock passes. Returns how long the job waited for the lock, in ms of that time. */
  async function waitForLock(bench: MapBench, onStep = async () => {}): Promise<number> {
    const before = await readFile(`${path}.lock`, 'utf8');
    useFakeClock({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const began = performance.now();
    const running = run(bench, ['a']);
    let isOver = false;
    running.catch(() => {}).finally(() => (isOver = true));
    while (!isOver && (await readFile(`${path}.lock`, 'utf8').catch(() => before)) === before) {
      await vi.advanceTimersByTimeAsync(250);
      await onStep();
      await sleep(1);
    }
    const waited = performance.now() - began;
    useRealClock();
    await running;
    return waited;
  }

  it.runIf(process.platform === 'linux').for([
    ['no longer runs', async () => spawnSync(process.execPath, ['-e', '']).pid],
    ['had the id of a process that runs now', async () => process.ppid],
    ['has ended, and its parent does not know', zombie],
  ] as const)('is replaced at once if its process %s', async ([, find], { bench }) => {
    const own = await ownLock(bench);
    await lockWith({ ...own, ...HERE, pid: await find(), started: '1' });
    await run(bench, ['a']);
    expect(await lines()).toEqual(['fulfilled 0 a']);
    expect(existsSync(`${path}.lock`)).toBe(false);
  });

  it.for<[string, object | string, seconds: number]>([
    ['a process of another machine', { pid: 1, host: 'elsewhere', token: 'x' }, 10],
    ['a container with the name of this machine', { ...HERE, system: 'another kernel' }, 10],
    ['a machine that was full', '', 3],
    ['a process that was killed while it wrote', '{"pid":12', 3],
    ['another program', '[]', 3],
  ])('of %s is replaced when nobody has touched it for some time', async ([, holder, seconds], { bench }) => {
    await lockWith(holder);
    const waited = await waitForLock(bench);
    expect(waited).toBeGreaterThan(seconds * 1000 - 300);
    // The clock of the test goes on while files are read.
    expect(waited).toBeLessThan(seconds * 2000);
    expect(await lines()).toEqual(['fulfilled 0 a']);
  });

  it.for<[string, object | string, string]>([
    ['a process of another machine', { pid: 1, host: 'elsewhere', token: 'x' }, 'process 1 on elsewhere'],
    [
      'a process with a name of its own choice',
      { pid: 1, host: '\u001B[2Jelse\nwhere', token: 'x' },
      String.raw`process 1 on \u001b[2Jelse where`,
    ],
    ['nobody', '', 'another job'],
  ])('of %s is respected while it is touched', async ([, holder, who], { bench }) => {
    await lockWith(holder);
    let time = 1000;
    const touch = () => utimes(`${path}.lock`, time, ++time);
    await expect(waitForLock(bench, touch)).rejects.toThrow(`is in use by ${who}`);
    expect(bench.granted).toEqual([]);
  });

  it('is respected at once if it is no file', async ({ bench }) => {
    await mkdir(`${path}.lock`);
    await expect(run(bench, ['a'])).rejects.toThrow('is in use by another job');
  });

  it.runIf(process.getuid?.() !== 0 || process.seteuid)(
    'ends the job if it can not be removed',
    async ({ bench }) => {
      const folder = await mkdtemp(join(tmpdir(), 'shared-'));
      onTestFinished(() => rm(folder, { recursive: true }));
      path = join(folder, 'outcomes.jsonl');
      await lockWith({ ...(await ownLock(bench)), ...HERE, started: '1' });
      await chmod(folder, 0o555);
      // The permissions of a folder do not limit root.
      process.seteuid?.(65_534);
      try {
        await expect(run(bench, ['a'])).rejects.toMatchObject({
          code: 'ERR_CHECKPOINT',
          message: expect.stringContaining('so that the folder must be writable') as string,
        });
      } finally {
        process.seteuid?.(0);
        await chmod(folder, 0o755);
      }
    },
  );
});

/** The id of a process that has ended, and whose parent never asks for its exit code. */
async function zombie(): Promise<number> {
  const parent = spawn('sh', ['-c', 'sleep 0.2 & echo $!; exec sleep 60'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void parent.kill());
  const [pid] = await once(parent.stdout, 'data');
  await expect.poll(() => readFile(`/proc/${Number(pid)}/stat`, 'utf8')).toContain(') Z ');
  return Number(pid);
}

it('writes no more outcomes when another job has taken its lock', async ({ bench }) => {
  const task = async ({ input }: { input: string }) => {
    if (input === 'a') return;
    await writeFile(`${path}.lock`, JSON.stringify({ pid: 7, host: 'elsewhere', token: 'x' }));
    await sleep(1500);
  };
  const job = bench.run(['a', 'b'], task, { checkpoint: path, concurrency: 1 });
  await expect(job).rejects.toThrow('is in use by process 7 on elsewhere');
  expect(await lines()).toEqual(['fulfilled 0 a']);
  // The lock is the other job's.
  expect(existsSync(`${path}.lock`)).toBe(true);
});

it('does not replace the file when another job has taken its lock after the last outcome', async ({
  bench,
}) => {
  await bench.run(['a'], () => Promise.reject(new Error('mine')), { checkpoint: path });
  const before = await readFile(path, 'utf8');
  async function* inputs() {
    yield 'a';
    await taken.promise;
  }
  const taken = gate();
  const job = bench.map(inputs(), () => {}, { checkpoint: path });
  expect(await job.next()).toMatchObject({ value: { status: 'fulfilled' } });
  await writeFile(`${path}.lock`, JSON.stringify({ pid: 7, host: 'elsewhere', token: 'x' }));
  taken.open();
  await expect(job.next()).rejects.toThrow('is in use by process 7 on elsewhere');
  expect((await readFile(path, 'utf8')).slice(0, before.length)).toBe(before);
});

it('names the file when an outcome cannot be written, and writes nothing after it', async ({ bench }) => {
  const file = await open(path, 'a+');
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  const handles = Object.getPrototypeOf(file) as typeof file;
  await file.close();
  const append = vi.spyOn(handles, 'appendFile').mockRejectedValueOnce(full);
  onTestFinished(() => append.mockRestore());
  await expect(run(bench, ['a', 'b'])).rejects.toMatchObject({
    code: 'ERR_CHECKPOINT',
    message: `The outcome of input 0 cannot be written to ${path}: ENOSPC: no space left on device, write.`,
    cause: { code: 'ENOSPC' },
  });
  expect(await lines()).toEqual([]);
  expect(existsSync(`${path}.lock`)).toBe(false);
});

it.for<[what: string, change: (text: string) => Promise<unknown>]>([
  ['replaced', async (text) => (await writeFile(`${path}.new`, text), rename(`${path}.new`, path))],
  ['deleted', () => rm(path)],
])(
  'ends the job when another program has %s the file, where no outcome would be stored',
  async (how, { bench }) => {
    const [, change] = how;
    const changing = gate();
    const task = ({ input }: { input: string }) => (input === 'a' ? undefined : changing.promise);
    const job = bench.map(['a', 'b', 'c'], task, { checkpoint: path, concurrency: 1 });
    await job.next();
    await change(await readFile(path, 'utf8'));
    changing.open();
    const rest = (async () => {
      while (!(await job.next()).done);
    })();
    const message =
      /has changed, replaced or deleted the checkpoint .*inputs without an outcome there run again/;
    await expect(rest).rejects.toMatchObject({ code: 'ERR_CHECKPOINT', message });
  },
);

it('removes no line of a file that another program has changed', async ({ bench }) => {
  await run(bench, ['a', 'b'], 'a');
  const before = await readFile(path, 'utf8');
  const added = before.replaceAll(/"index":\d/g, '"index":7');
  const job = bench.run(['a'], () => writeFile(path, added + before), { checkpoint: path });
  await expect(job).rejects.toMatchObject({ code: 'ERR_CHECKPOINT' });
  expect(await readFile(path, 'utf8')).toContain(added + before);
});

it.for<(line: string) => string>([
  (line) => line.slice(0, 20),
  // Written by another program.
  (line) => line.replace(/}$/, ',"artifacts":"x"}'),
  (line) => line.replace(/}$/, ',"replays":[{}]}'),
])('says what to do with a damaged line between others (%#)', async (damage, { bench }) => {
  await run(bench, ['a', 'b', 'c']);
  const [first = '', second = '', ...rest] = (await readFile(path, 'utf8')).split('\n');
  await writeFile(path, [first, damage(second), ...rest].join('\n'));
  await expect(run(bench, ['a', 'b', 'c'])).rejects.toThrow(
    /line 2: .*delete the line, and its input runs again/,
  );
  await writeFile(path, [first, ...rest].join('\n'));
  expect(await run(bench, ['a', 'b', 'c'])).toMatchObject([{ input: 'b' }]);
});

it('loses no outcome that another program adds while the file is read', async ({ bench }) => {
  await run(bench, ['a']);
  const line = await readFile(path, 'utf8');
  const file = await open(path, 'a+');
  const handles = Object.getPrototypeOf(file) as typeof file;
  await file.close();
  const read = handles.createReadStream;
  const reading = vi.spyOn(handles, 'createReadStream').mockImplementationOnce(function (
    this: typeof file,
    how,
  ) {
    return read.call(this, how).once('end', () => appendFileSync(path, line));
  });
  onTestFinished(() => reading.mockRestore());
  await expect(run(bench, ['a', 'b'])).rejects.toThrow('has changed, replaced or deleted the checkpoint');
  expect(await readFile(path, 'utf8')).toBe(line + line);
});

it('is readable for its owner only, and so is its lock', async ({ bench }) => {
  const modes = () => [path, `${path}.lock`].map((file) => statSync(file).mode & 0o777);
  expect(await bench.run(['a'], modes, { checkpoint: path })).toMatchObject([{ value: [0o600, 0o600] }]);
});

it('fails a task that returns no data, once, and stores its reason', async ({ bench }) => {
  const [outcome] = await bench.run(['a'], () => () => {}, { checkpoint: path, retries: 3 });
  const reason = { name: 'TaskResultError', code: 'ERR_TASK_RESULT' };
  expect(outcome).toMatchObject({ status: 'rejected', attempts: 1, reason });
  expect(await records()).toMatchObject([{ status: 'rejected', reason }]);
});

it('accepts any value without a checkpoint', async ({ bench }) => {
  const value = new Map([['a', 1n]]);
  expect(await bench.run(['a'], () => value)).toMatchObject([{ status: 'fulfilled', value }]);
});
