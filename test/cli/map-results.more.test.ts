import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { Jobs, LIBRARY } from './jobs.js';
import { expectRefusal, runHere } from './support.js';

const jobs = new Jobs();
const { file, script, inputs, map, results, run } = jobs;

/** Fails for inputs that begin with "bad". */
const TASK = `export default ({ input }) => {
  if (input.startsWith('bad')) throw new RangeError('no price on https://shop.test/' + input + '\\nCall log: …');
  return { name: input, tags: ['a', 1], size: null };
};`;
const FIXED = 'export default () => 1;';

it('writes a column of CSV for each path in the results, and resumes from the JSON lines beside the file', async () => {
  const out = join(jobs.folder, 'out.csv');
  const args = [inputs('tea, "green"', 'bad 1'), '--format', 'csv', '--out', out, '--concurrency', '1'];
  const { code, stdout, stderr } = await run([script(TASK), ...args]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain('To retry the failed inputs, add --resume to the same command.');
  const values = ['value.name', 'value.tags', 'value.size', 'reason.name', 'reason.message'];
  const id = expect.stringMatching(/^\w{32}$/) as string;
  const message = 'no price on https://shop.test/bad 1\nCall log: …';
  expect(readCsv(out)).toEqual([
    ['index', 'input', 'status', 'attempts', 'sessionId', ...values],
    ['0', 'tea, "green"', 'fulfilled', '1', id, 'tea, "green"', '["a",1]', '', '', ''],
    ['1', 'bad 1', 'rejected', '1', id, '', '', '', 'RangeError', message],
  ]);

  const hostile = script("export default () => 'a\\x1b[2J\\x9b\\tb';");
  const again = await run([hostile, ...args, '--resume']);
  expect(again).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('1 succeeded, 0 failed, 1 skipped'),
  });
  expect(readCsv(out).map((cells) => cells[2])).toEqual(['status', 'fulfilled', 'fulfilled']);
  expect(readCsv(out)[2]!.slice(5)).toEqual(['', '', '', 'a\\u001b[2J\\u009b\tb']);
  expect(results(`${out}.jsonl`)).toHaveLength(2);
});

it('stops with --stop-after-failures, and continues with --resume', async () => {
  const words = [inputs('good', 'bad 1', 'bad 2', 'more', 'and more'), '--out', jobs.out];
  const { code, stderr } = await run([
    script(TASK),
    ...words,
    '--concurrency',
    '1',
    '--stop-after-failures',
    '2',
  ]);
  expect(code).toBe(1);
  expect(stderr).toContain('The job stopped, because 2 inputs failed');
  expect(stderr).toContain('To continue, add --resume to the same command.');
  expect(await run([script(FIXED), ...words, '--resume'])).toMatchObject({ code: 0 });
  expect(results().map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => 'fulfilled'));
});

it('leaves no empty file if the service is not reached, and names the flag of the address', async () => {
  const words = [
    'map',
    'test',
    ...LIBRARY,
    script(FIXED),
    inputs('a'),
    '--out',
    jobs.out,
    '--unreachable-timeout',
    '1ms',
  ];
  const { code, stderr } = await runHere(words, { baseUrl: 'http://127.0.0.1:1', token: 'token' });
  expect(code).toBe(1);
  expect(stderr).toContain('Check --base-url or BROWSER_POOL_BASE_URL and the network.');
  expect(existsSync(jobs.out)).toBe(false);
});

it('refuses other inputs with --resume before anything is leased, unless with --force', async () => {
  const words = (...more: string[]) => [script(FIXED), ...more, '--out', jobs.out];
  expect(await run(words(inputs('a', 'b')))).toMatchObject({ code: 0 });
  const before = readFileSync(jobs.out, 'utf8');
  const { granted } = jobs.local.stats();
  const others = file('in.txt', '\na\n\nc\nd\n');
  expectRefusal(await run(words(others, '--resume')), 'input 2 is c, and was b.');
  const stdin = map(words('-', '--resume'), { stdin: 'pipe' });
  stdin.child.stdin!.write('other\n');
  expectRefusal(await stdin.ended, 'input 1 is other, and was a.');
  expect(jobs.local.stats().granted).toBe(granted);
  expect(readFileSync(jobs.out, 'utf8')).toBe(before);
  const { code, stderr } = await run(words(others, '--resume', '--force'));
  expect(code, stderr).toBe(0);
  expect(stderr).toContain('Finished: 2 succeeded, 0 failed, 1 skipped');
});

it('runs the task for each row of a table as an object, limits hosts by its url, and resumes', async () => {
  const task = `export default ({ input: { url, name, note }, attempt }) => {
    if (name === 'cup' && !process.env.CUPS) throw new Error('no price of ' + name);
    return [new URL(url).host, name, note];
  };`;
  const table = file(
    'shops.csv',
    'url,name,note\r\nhttps://a.test/1,tea,"a ""b""\r\nc"\r\nhttps://a.test/2,cup,\r\n',
  );
  const out = join(jobs.folder, 'out.csv');
  const words = [table, '--out', out, '--format', 'csv', '--host-concurrency', '1'];
  const first = await run([script(task), ...words]);
  expect(first.code, first.stderr).toBe(1);
  expect(first.stderr).toContain(
    '1 × Error: no price of cup (for example {"url":"https://a.test/2","name":"cup","note":""})',
  );
  vi.stubEnv('CUPS', '1');
  const second = await run([script(task), ...words, '--resume']);
  expect(second.code, second.stderr).toBe(0);
  expect(second.stderr).toContain('Finished: 1 succeeded, 0 failed, 1 skipped');
  const inputs = ['input.url', 'input.name', 'input.note'];
  expect(readCsv(out).map((cells) => [...cells.slice(0, 5), cells.at(-1)])).toEqual([
    ['index', ...inputs, 'status', 'value'],
    ['0', 'https://a.test/1', 'tea', 'a "b"\r\nc', 'fulfilled', '["a.test","tea","a \\"b\\"\\r\\nc"]'],
    ['1', 'https://a.test/2', 'cup', '', 'fulfilled', '["a.test","cup",""]'],
  ]);
});

it('refuses a wrong line at the end of a file before anything is leased, and one of stdin before its task', async () => {
  const { granted } = jobs.local.stats();
  const list = file('list.jsonl', '{"n":1}\n{"n":2}\n{"n":');
  const echo = script('export default ({ input }) => input.n;');
  expectRefusal(await run([echo, list]), `in ${list}, line 3 is not JSON: {"n":`);
  expect(jobs.local.stats().granted).toBe(granted);
  const stdin = map([echo, '-', '--input-format', 'jsonl', '--concurrency', '1'], { stdin: 'pipe' });
  stdin.child.stdin!.write('{"n":1}\n');
  await stdin.prints(/"input":\{"n":1\}.*"value":1/);
  stdin.child.stdin!.end('{"n"\n{"n":3}\n');
  const { code, stdout, stderr } = await stdin.ended;
  expect(code).toBe(2);
  expect(stderr).toContain('in stdin, line 2 is not JSON: {"n"');
  expect(stdout.trimEnd().split('\n')).toHaveLength(1);
});

describe('a script in TypeScript', () => {
  const startScript = async () => {
    const source = `enum Kind { Tea = 'tea' }
      export default async ({ input }: { input: string }): Promise<string> => Kind.Tea + input;`;
    return map([file('task.ts', source), inputs('a')], { cwd: jobs.folder }).ended;
  };

  it.each([
    ['an ES module', '{"type":"module"}'],
    ['a folder without a package', undefined],
  ])('runs where tsx is installed (%s)', async (_what, manifest) => {
    mkdirSync(join(jobs.folder, 'node_modules'));
    symlinkSync(resolve('node_modules/tsx'), join(jobs.folder, 'node_modules/tsx'));
    if (manifest) file('package.json', manifest);
    const { code, stdout, stderr } = await startScript();
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(JSON.parse(stdout)).toMatchObject({ input: 'a', value: 'teaa' });
  });

  it.skipIf(Reflect.get(process.features, 'typescript'))(
    'is refused elsewhere, with what to install',
    async () => {
      const ended = await startScript();
      expectRefusal(ended, 'Unknown file extension ".ts"');
      const advice = `use Node 22.18 or newer (this is ${process.version}), or install tsx: npm install`;
      expect(ended.stderr).toContain(advice);
    },
  );
});

describe('refusals', () => {
  const withTask = (...words: string[]) => [script(FIXED), inputs('a'), ...words];
  const usedUp = (name = 'used.jsonl') => ['--out', file(name, '{}\n')];

  it.each<[string, string, () => string[]]>([
    [
      'a script that is missing',
      'The script missing.mjs does not exist.',
      () => ['missing.mjs', inputs('a')],
    ],
    ['a script without a task', 'needs a function as its default export', () => [script(''), inputs('a')]],
    ['a script that fails', "can't be loaded: mine", () => [script("throw Error('mine')"), inputs('a')]],
    ['missing inputs', 'missing.txt does not exist.', () => [script(FIXED), 'missing.txt']],
    ['inputs that are a folder', 'is a folder', () => [script(FIXED), jobs.folder]],
    ['--resume without --out', '--resume needs --out', () => withTask('--resume')],
    ['--out with results', 'is not empty. Pass --resume', () => withTask(...usedUp())],
    ['CSV in a used file', 'is not empty', () => withTask(...usedUp('notes.csv'), '--format', 'csv')],
    ['CSV of no job', 'is not empty', () => withTask(...usedUp('notes.csv'), '--format', 'csv', '--resume')],
    [
      '--out in no folder',
      "--out /nope/x.jsonl can't be written: the folder /nope does not exist.",
      () => withTask('--out', '/nope/x.jsonl'),
    ],
    ['--out that is a folder', 'EISDIR', () => withTask('--out', jobs.folder)],
    ['--force without --resume', '--force needs --resume', () => withTask('--force')],
    ['CSV without --out', '--format csv needs --out', () => withTask('--format', 'csv')],
    ['--ordered with --out', 'cannot be used with', () => withTask('--out', jobs.out, '--ordered')],
    ['BiDi with Playwright', 'protocol', () => withTask('--library', 'playwright', '--protocol', 'bidi')],
    ['no browsers', '--concurrency 0 needs --queue', () => withTask('--concurrency', '0')],
    ['a bad name', 'name', () => withTask('--name', 'a b')],
    [
      'artifacts in no folder',
      "--artifacts /dev/null/a can't be written: ENOTDIR: ",
      () => withTask('--artifacts', '/dev/null/a'),
    ],
    [
      '--host-delay for a table without a url, and names its columns',
      'Input 0 is no URL and has no url (it has sku, link)',
      () => [script(FIXED), file('links.csv', 'sku,link\n1,https://a.test\n'), '--host-delay', '1s'],
    ],
    ['--trace alone', '--trace needs --artifacts, a folder for the traces.', () => withTask('--trace')],
    [
      '--artifacts-on alone',
      '--artifacts-on needs --artifacts, a folder.',
      () => withTask('--artifacts-on', 'always'),
    ],
    [
      'another choice of artifacts',
      "argument 'success' is invalid. Allowed choices are failure",
      () => withTask('--artifacts', join(jobs.folder, 'a'), '--artifacts-on', 'success'),
    ],
    [
      '--trace with Puppeteer',
      '--trace: Only Playwright records traces: remove artifacts.trace.',
      () => withTask('--artifacts', join(jobs.folder, 'a'), '--trace'),
    ],
  ])('refuses %s with exit code 2, before anything is leased or written', async (_what, message, args) => {
    const words = args();
    const [before, { granted }] = [files(), jobs.local.stats()];
    expectRefusal(await run(words), message);
    expect(jobs.local.stats().granted).toBe(granted);
    expect(files()).toEqual(before);
  });

  /** The files of the test with their content. */
  function files(): [name: string, content: string][] {
    const found = readdirSync(jobs.folder, { withFileTypes: true }).filter((entry) => entry.isFile());
    return found.map(({ name }) => [name, readFileSync(join(jobs.folder, name), 'utf8')]);
  }
});

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
