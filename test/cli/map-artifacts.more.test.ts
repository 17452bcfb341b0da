import { existsSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { titled, useLocalPool } from '../support/local.js';
import { startClient } from './support.js';

// A program starts slowly on a busy machine.
const used = useLocalPool();

/** Logs its input, and fails for inputs that begin with "bad". */
const TASK = `export default async ({ input, page }) => {
  await page.goto(${JSON.stringify(titled('Hello'))});
  await page.evaluate((text) => console.log(text), input);
  if (input.startsWith('bad')) throw new Error('not good');
};`;

let folder: string;
let evidence: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'map-'));
  evidence = join(folder, 'evidence');
});

it('collects the artifacts of failed attempts, and adds their paths to the results', async () => {
  const { code, stdout, stderr } = await map('good\nbad\n', '--artifacts', evidence, '--trace', '--ordered')
    .ended;
  expect(code).toBe(1);
  expect(artifactsIn(stdout)).toEqual([[], ['console.jsonl', 'screenshot.png', 'trace.zip']]);
  expect(readdirSync(evidence)).toEqual([expect.stringMatching(/^task-1-attempt-1-\w{6}$/)]);
  expect(stderr).toContain(`pooled-browser: Artifacts: 3 files in ${evidence}\n`);
});

it('collects the artifacts of all attempts, with Puppeteer over BiDi', async () => {
  const flags = ['--artifacts-on', 'always', '--library', 'puppeteer', '--protocol', 'bidi'];
  const { code, stdout } = await map('good\n', '--artifacts', evidence, ...flags).ended;
  expect(code).toBe(0);
  expect(artifactsIn(stdout)).toEqual([['console.jsonl', 'screenshot.png']]);
});

it.each([
  [['--artifacts', '/dev/null/a'], "--artifacts /dev/null/a can't be written: ENOTDIR: "],
  [['--trace'], '--trace needs --artifacts, a folder for the traces.'],
  [['--artifacts-on', 'always'], '--artifacts-on needs --artifacts, a folder.'],
  [
    ['--artifacts', 'a', '--artifacts-on', 'success'],
    "argument 'success' is invalid. Allowed choices are failure",
  ],
  [
    ['--artifacts', 'EVIDENCE', '--trace', '--library', 'puppeteer'],
    '--trace: Only Playwright records traces: remove artifacts.trace.',
  ],
])('refuses %j before it leases a browser', async (flags, message) => {
  const words = flags.map((flag) => (flag === 'EVIDENCE' ? evidence : flag));
  const { code, stderr } = await map('good\n', ...words).ended;
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) as string });
  expect(used.local.stats().leased).toBe(0);
  expect(existsSync('a')).toBe(false);
});

function map(inputs: string, ...flags: string[]) {
  const [task, list] = [join(folder, 'task.mjs'), join(folder, 'inputs.txt')];
  writeFileSync(task, TASK);
  writeFileSync(list, inputs);
  return startClient(['map', 'test', task, list, ...flags], used.local);
}

/** The names of the artifacts of each result. */
function artifactsIn(stdout: string): string[][] {
  const results = stdout.trimEnd().split('\n');
  return results.map((line) => {
    const { artifacts = [] } = JSON.parse(line) as { artifacts?: string[] };
    return artifacts.map((path) => basename(path));
  });
}
