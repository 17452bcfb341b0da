import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { beforeEach, describe, expect } from 'vitest';
import type { Isolation, MapOptions, Outcome } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { titled, useLocalPool } from '../support/local.js';
import { it } from './it.js';
import { collect } from './support.js';

const used = useLocalPool({ pools: [{ name: 'test', size: 2 }] });

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'artifacts-'));
});

interface Task {
  page: { goto(url: string): Promise<unknown>; evaluate(script: string): Promise<unknown> };
  input: string;
  session: { session_id: string };
}

/** Logs the input. A failed input, a slow one and one without a browser fail. */
async function task({ page, input, session }: Task): Promise<void> {
  await page.goto(titled(input));
  await page.evaluate(`console.log('input ' + ${JSON.stringify(input)})`);
  if (input.startsWith('bad')) throw new Error(input);
  if (input === 'lost') await used.pool.release(session.session_id, { reuse: false });
  if (input === 'slow' || input === 'lost') await new Promise(() => {});
}

type Map = (inputs: string[], options: MapOptions) => Promise<Outcome<string, void>[]>;

const withPlaywright: Map = (inputs, options) =>
  collect(playwright.mapPooledBrowsers(used.pool, inputs, task, options as object));
const withPuppeteer: Map = (inputs, options) =>
  collect(puppeteer.mapPooledBrowsers(used.pool, inputs, task, options));

const namesOf = ({ artifacts }: Outcome<string, void>) => artifacts.map((path) => basename(path));

/** The messages in the log of an outcome. */
function messagesOf({ artifacts }: Outcome<string, void>): unknown[] {
  const logs = artifacts.filter((path) => path.endsWith('console.jsonl'));
  const lines = logs.flatMap((path) => readFileSync(path, 'utf8').trimEnd().split('\n'));
  return lines.map((line) => (JSON.parse(line) as { text?: string }).text);
}

describe.each([
  ['Playwright', withPlaywright],
  ['Puppeteer', withPuppeteer],
])('artifacts with %s', (_library, map) => {
  it.for<[Isolation, number]>([
    ['context', 2],
    ['storage', 2],
    ['none', 1],
  ])('are those of the failed task alone, with isolation %s', async ([isolation, pagesPerLease]) => {
    const inputs = ['good 1', 'bad 2', 'good 3', 'bad 4', 'good 5', 'bad 6'];
    const options = { isolation, pagesPerLease, concurrency: 2, artifacts: { folder } };
    for (const outcome of await map(inputs, options)) {
      const isBad = outcome.status === 'rejected';
      expect(messagesOf(outcome)).toEqual(isBad ? [`input ${outcome.input}`] : []);
      expect(namesOf(outcome)).toEqual(isBad ? ['console.jsonl', 'screenshot.png'] : []);
    }
    expect(readdirSync(folder)).toHaveLength(3);
  });

  it('are of each attempt, in folders with the index and the attempt, and in the checkpoint', async () => {
    const artifacts = { folder, screenshot: false };
    const checkpoint = join(folder, 'checkpoint.jsonl');
    const retry = { minTimeout: 1, maxTimeout: 1 };
    const options = { name: 'nightly', retries: 1, retry, artifacts, checkpoint };
    const [outcome] = await map(['bad'], options);
    expect(outcome!.artifacts.map((path) => basename(dirname(path)))).toEqual([
      expect.stringMatching(/^nightly-task-0-attempt-1-\w{6}$/),
      expect.stringMatching(/^nightly-task-0-attempt-2-\w{6}$/),
    ]);
    const stored = JSON.parse(readFileSync(checkpoint, 'utf8')) as { artifacts: string[] };
    expect(stored.artifacts).toEqual(outcome!.artifacts);
  });
});

it('records a trace of each task of Playwright', async () => {
  const artifacts = { folder, on: 'always', trace: true, screenshot: false, console: false } as const;
  const options = { isolation: 'storage', concurrency: 1, artifacts } as const;
  const outcomes = await withPlaywright(['a', 'b', 'c'], options);
  expect(outcomes.map(namesOf)).toEqual([['trace.zip'], ['trace.zip'], ['trace.zip']]);
});

it('collects the screenshot and the log of a task that timed out, and the log of one that lost its browser', async () => {
  const options = { ordered: true, taskTimeout: 3000, artifacts: { folder } };
  const outcomes = await withPlaywright(['slow', 'lost'], options);
  expect(outcomes).toMatchObject([
    { status: 'rejected', reason: { name: 'TaskTimeoutError' } },
    { status: 'rejected', reason: { name: 'BrowserLostError' } },
  ]);
  expect(outcomes.map(namesOf)).toEqual([['console.jsonl', 'screenshot.png'], ['console.jsonl']]);
});

it('refuses a folder that can not be written before anything is sent', async ({ bench }) => {
  const refused = bench.run(['a'], () => {}, { artifacts: { folder: '/dev/null/artifacts' } });
  await expect(refused).rejects.toMatchObject({ name: 'InvalidOptionError', option: 'artifacts.folder' });
  expect(bench.service.requests).toEqual([]);
});

it('refuses a trace in a context that tasks share', () => {
  const options = { isolation: 'none', pagesPerLease: 2, artifacts: { folder, trace: true } } as const;
  expect(() => playwright.mapPooledBrowsers(used.pool, ['a'], task, options)).toThrow(
    /^A context has one trace at a time, and with isolation none/,
  );
});
