import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { useLocalPool } from '../support/local.js';
import { hasTerminals, startAtTerminal, startClient, type ProgramOptions } from './support.js';

// Several programs run one after the other, which takes long on a busy machine.
const used = useLocalPool({ pools: [{ name: 'test', size: 2 }] });

/** The tests need no particular library: this one loads in half the time of the default. */
const LIBRARY = ['--library', 'puppeteer'];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'map-'));
});

/** Fails for inputs that begin with "bad". */
const TASK = `export default ({ input }) => {
  if (input.startsWith('bad')) throw new RangeError('no price on https://shop.test/' + input + '\\nCall log: …');
  return { name: input, tags: ['a', 1], size: null };
};`;

describe('--format csv', () => {
  it('writes a column for each path in the results, and resumes from the JSON lines beside the file', async () => {
    const out = join(folder, 'out.csv');
    const args = ['--format', 'csv', '--out', out, '--concurrency', '1'];
    const inputs = file('in.txt', 'tea, "green"\nbad 1\n');
    const { code, stdout } = await start(file('task.mjs', TASK), inputs, ...args).ended;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    const id = expect.stringMatching(/^\w{32}$/) as string;
    expect(readCsv(out)).toEqual([
      [
        'index',
        'input',
        'status',
        'attempts',
        'sessionId',
        'value.name',
        'value.tags',
        'value.size',
        'reason.name',
        'reason.message',
      ],
      ['0', 'tea, "green"', 'fulfilled', '1', id, 'tea, "green"', '["a",1]', '', '', ''],
      [
        '1',
        'bad 1',
        'rejected',
        '1',
        id,
        '',
        '',
        '',
        'RangeError',
        'no price on https://shop.test/bad 1\nCall log: …',
      ],
    ]);

    const hostile = file('task.mjs', "export default () => 'a\\x1b[2J\\x9b\\tb';");
    const again = await start(hostile, inputs, ...args, '--resume').ended;
    expect(again.code).toBe(0);
    expect(readCsv(out).map((cells) => cells[2])).toEqual(['status', 'fulfilled', 'fulfilled']);
    expect(readCsv(out)[2]!.slice(5)).toEqual(['', '', '', 'a\\u001b[2J\\u009b\tb']);
    expect(lines(`${out}.jsonl`)).toHaveLength(2);
  });

  it.each(['', '--resume'])('refuses a file that is not empty and belongs to no job (%j)', async (flag) => {
    const out = file('notes.csv', 'my notes\n');
    const args = [file('task.mjs', TASK), file('in.txt', 'a\n'), '--format', 'csv', '--out', out, flag];
    const { code, stderr } = await start(...args).ended;
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining('is not empty') as string,
    });
    expect(readFileSync(out, 'utf8')).toBe('my notes\n');
  });
});

describe('failures', () => {
  it('are grouped by reason at the end, the most frequent first, with an example', async () => {
    const task = `export default ({ input }) => {
      if (input === 'odd') throw 'a string';
      if (input !== 'good') throw new RangeError('no price on https://shop.test/' + input + ' after 30' + input.length + ' ms');
    };`;
    const inputs = file('in.txt', 'odd\none\ngood\nthree\nseventeen\n');
    const { code, stderr } = await start(file('task.mjs', task), inputs, '--concurrency', '1').ended;
    expect(code).toBe(1);
    expect(stderr).toContain(
      'pooled-browser: 4 inputs failed:\n' +
        '  3 × RangeError: no price on https://shop.test/one after 303 ms\n' +
        '  1 × a string (for example odd)\n' +
        'pooled-browser: Done: 1 fulfilled, 4 failed',
    );
  });

  it('stop the job with --stop-after-failures, and shouldRetry of the script decides about retries', async () => {
    const out = join(folder, 'out.jsonl');
    const task = `${TASK}
      export const shouldRetry = (error, { input }) => input !== 'bad 2';`;
    const inputs = file('in.txt', 'good\nbad 1\nbad 2\nmore\nand more\n');
    const args = [file('task.mjs', task), inputs, '--out', out, '--concurrency', '1', '--retries', '1'];
    const { code, stderr } = await start(...args, '--stop-after-failures', '2').ended;
    expect(code).toBe(1);
    expect(stderr).toContain('The job stopped, because 2 inputs failed');
    expect(stderr).toContain('To continue, add --resume to the same command.');
    const stopped = results(out);
    expect(stopped).toContainEqual(['bad 1', 'rejected', 2]);
    expect(stopped).toContainEqual(['bad 2', 'rejected', 1]);
    const fixed = file('task.mjs', 'export default () => 1;');
    expect(await start(fixed, inputs, '--out', out, '--resume').ended).toMatchObject({ code: 0 });
    expect(
      results(out)
        .map(([input]) => input)
        .toSorted(),
    ).toEqual(['and more', 'bad 1', 'bad 2', 'good', 'more']);
  });
});

describe('--resume with other inputs', () => {
  const run = async (inputs: string, ...flags: string[]) =>
    start(file('task.mjs', TASK), file('in.txt', inputs), '--out', join(folder, 'out.jsonl'), ...flags).ended;

  it('is refused before anything is leased, unless --force is set', async () => {
    expect(await run('a\nb\n')).toMatchObject({ code: 0 });
    const before = readFileSync(join(folder, 'out.jsonl'), 'utf8');
    const { granted } = used.local.stats();
    const { code, stdout, stderr } = await run('a\nc\n', '--resume');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(
      /^pooled-browser: These are not the inputs of .*out\.jsonl: input 2 is c, and was b\. .*--force/,
    );
    expect(stderr.trimEnd()).not.toContain('\n');
    expect(used.local.stats().granted).toBe(granted);
    expect(readFileSync(join(folder, 'out.jsonl'), 'utf8')).toBe(before);
    expect(await run('a\nc\n', '--resume', '--force')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Done: 1 fulfilled, 0 failed, 1 done before') as string,
    });
    expect(await run('a\nc\nd\n', '--resume')).toMatchObject({ code: 0 });
    // Starts a program four times.
  }, 600_000);

  it('is accepted if there are only more inputs at the end', async () => {
    expect(await run('a\nb\n')).toMatchObject({ code: 0 });
    expect(await run('\na\n\nb\nc\n', '--resume')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Done: 1 fulfilled, 0 failed, 2 done before') as string,
    });
  });

  it('is refused on stdin when the other input is read', async () => {
    expect(await run('a\nb\n')).toMatchObject({ code: 0 });
    const { granted } = used.local.stats();
    const args = [file('task.mjs', TASK), '-', '--out', join(folder, 'out.jsonl'), '--resume'];
    const running = start(...args, { stdin: 'pipe' });
    running.child.stdin!.write('other\n');
    const { code, stderr } = await running.ended;
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining('input 1 is other, and was a.') as string,
    });
    expect(used.local.stats().granted).toBe(granted);
  });
});

describe('a script in TypeScript', () => {
  const SCRIPT = `enum Kind { Tea = 'tea' }
    export default async ({ input }: { input: string }): Promise<string> => Kind.Tea + input;`;

  it.each([
    ['an ES module', '{"type":"module"}'],
    ['a folder without a package', undefined],
  ])('runs where tsx is installed (%s)', async (_what, manifest) => {
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(resolve('node_modules/tsx'), join(folder, 'node_modules/tsx'));
    if (manifest) file('package.json', manifest);
    const { code, stdout, stderr } = await startIn(folder);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(JSON.parse(stdout)).toMatchObject({ input: 'a', value: 'teaa' });
  });

  it.skipIf(Reflect.get(process.features, 'typescript'))(
    'is refused elsewhere, with what to install',
    async () => {
      const { code, stdout, stderr } = await startIn(folder);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain('Unknown file extension ".ts"');
      expect(stderr).toContain(
        `use Node 22.18 or newer (this is ${process.version}), or install tsx: npm install`,
      );
    },
  );

  const startIn = async (cwd: string) => start(file('task.ts', SCRIPT), file('in.txt', 'a\n'), { cwd }).ended;
});

describe.runIf(hasTerminals)('the bar at a terminal', () => {
  it('has no line wider than the terminal, also after the terminal became narrower, and shows the last error', async () => {
    const task = `import { execSync } from 'node:child_process';
      export default async ({ input, index }) => {
        if (index === 1) throw new RangeError('no price on this very long page of the shop');
        if (index === 3) execSync('stty cols 30', { stdio: 'inherit' });
        await new Promise((resolve) => setTimeout(resolve, 700));
        if (index === 3) console.log('resized');
      };`;
    const inputs = [0, 1, 2, 3, 4].map(
      (index) => `https://shop.example.com/products/${index}?sort=price&page=1`,
    );
    const args = [
      file('task.mjs', task),
      file('in.txt', inputs.join('\n')),
      '--out',
      join(folder, 'out.jsonl'),
    ];
    const running = startAtTerminal(
      ['map', 'test', ...LIBRARY, ...args, '--concurrency', '1'],
      used.local,
      50,
    );
    const { code, stdout } = await running.ended;
    expect(code).toBe(1);
    const [wide, narrow] = stdout.slice(0, stdout.indexOf('pooled-browser: ')).split('resized');
    expect(widest(wide!)).toBe(49);
    expect(widest(narrow!)).toBe(29);
    expect(wide).toContain('last error: RangeError: no price on this very lo…');
    expect(wide).toMatch(/\d s {2}.*https:\/\/shop\.example\.com/);
    expect(wide).toContain('1 failed');
  });

  it.each([
    [{ NO_COLOR: '1' }, false],
    [{ TERM: 'dumb', FORCE_COLOR: '1' }, true],
  ])('has colors where they are allowed: %j', async (environment, hasColors) => {
    for (const name of ['NO_COLOR', 'FORCE_COLOR', 'TERM']) vi.stubEnv(name, undefined);
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    const args = [file('task.mjs', TASK), file('in.txt', 'bad\n'), '--out', join(folder, 'out.jsonl')];
    const { stdout } = await startAtTerminal(['map', 'test', ...LIBRARY, ...args], used.local).ended;
    expect(stdout).toContain('1 failed');
    expect(stdout.includes('\x1b[31m1 failed\x1b[39m')).toBe(hasColors);
  });

  /** Width of the longest line that was printed. */
  function widest(output: string): number {
    // oxlint-disable-next-line no-control-regex -- it finds control characters
    const rows = output.replaceAll(/\x1b\[[\d;]*m/g, '').split(/\r?\n|\r|\x1b\[\d*[A-Z]/);
    return Math.max(...rows.map((row) => row.length));
  }
});

function start(...args: (string | ProgramOptions)[]) {
  const words = args.filter((word) => typeof word === 'string').filter(Boolean);
  const options = args.find((word) => typeof word === 'object');
  return startClient(['map', 'test', ...LIBRARY, ...words], used.local, options);
}

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function lines(path: string): string[] {
  return readFileSync(path, 'utf8').trimEnd().split('\n');
}

function results(path: string): [input: string, status: string, attempts: number][] {
  return lines(path).map((line) => {
    const { input, status, attempts } = JSON.parse(line) as {
      input: string;
      status: string;
      attempts: number;
    };
    return [input, status, attempts];
  });
}

/** Reads CSV as RFC 4180 describes it. */
function readCsv(path: string): string[][] {
  const text = readFileSync(path, 'utf8');
  expect(text).toMatch(/\r\n$/);
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain!);
    if (end === '\r\n') rows.push([]);
  }
  return rows.slice(0, -1);
}
