import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ArtifactsOptions, Isolation, MapOptions, Outcome } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { titled, useLocalPool } from '../support/local.js';
import { collect, MapBench } from './support.js';

const used = useLocalPool({ pools: [{ name: 'test', size: 2 }] });

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'artifacts-'));
});

interface Page {
  goto(url: string): Promise<unknown>;
  evaluate(script: string): Promise<unknown>;
}

/** Logs the input. Inputs that begin with "bad" fail. */
async function task({ page, input }: { page: Page; input: string }): Promise<void> {
  await page.goto(titled(input));
  await page.evaluate(`console.log('input ' + ${JSON.stringify(input)})`);
  if (input.startsWith('bad')) throw new Error(input);
}

type Map = (inputs: string[], options: MapOptions) => AsyncIterable<Outcome<string, void>>;

const LIBRARIES: [string, Map][] = [
  [
    'Playwright',
    (inputs, options) => playwright.mapPooledBrowsers(used.pool, inputs, task, options as object),
  ],
  ['Puppeteer', (inputs, options) => puppeteer.mapPooledBrowsers(used.pool, inputs, task, options)],
];

/** The messages in the log of an outcome. */
function messagesOf({ artifacts }: { artifacts: readonly string[] }): unknown[] {
  const logs = artifacts.filter((path) => path.endsWith('console.jsonl'));
  const lines = logs.flatMap((path) => readFileSync(path, 'utf8').trimEnd().split('\n'));
  return lines.map((line) => (JSON.parse(line) as { text?: string }).text);
}

describe.each(LIBRARIES)('artifacts with %s', (_library, map) => {
  it.each<[Isolation, number]>([
    ['context', 2],
    ['storage', 2],
    ['none', 1],
  ])('are those of the failed task alone, with isolation %s', async (isolation, pagesPerLease) => {
    const inputs = ['good 1', 'bad 2', 'good 3', 'bad 4', 'good 5', 'bad 6'];
    const options = { isolation, pagesPerLease, concurrency: 2, ordered: true, artifacts: { folder } };
    const outcomes = await collect(map(inputs, options));
    for (const outcome of outcomes) {
      const isBad = outcome.status === 'rejected';
      expect(messagesOf(outcome)).toEqual(isBad ? [`input ${outcome.input}`] : []);
      const names = outcome.artifacts.map((path) => basename(path));
      expect(names).toEqual(isBad ? ['console.jsonl', 'screenshot.png'] : []);
    }
    expect(readdirSync(folder)).toHaveLength(3);
  });

  it('are of each attempt, in folders with the index and the attempt', async () => {
    const artifacts = { folder, screenshot: false };
    const retry = { minTimeout: 1, maxTimeout: 1 };
    const [outcome] = await collect(map(['bad'], { name: 'nightly', retries: 1, retry, artifacts }));
    expect(outcome!.artifacts.map((path) => basename(dirname(path)))).toEqual([
      expect.stringMatching(/^nightly-task-0-attempt-1-\w{6}$/),
      expect.stringMatching(/^nightly-task-0-attempt-2-\w{6}$/),
    ]);
  });

  it('are in the checkpoint', async () => {
    const checkpoint = join(folder, 'checkpoint.jsonl');
    const [outcome] = await collect(map(['bad'], { checkpoint, artifacts: { folder } }));
    const { artifacts } = JSON.parse(readFileSync(checkpoint, 'utf8')) as { artifacts: string[] };
    expect(artifacts).toEqual(outcome!.artifacts);
    expect(artifacts).toHaveLength(2);
  });
});

it('records a trace of each task of Playwright', async () => {
  const artifacts: ArtifactsOptions = {
    folder,
    on: 'always',
    trace: true,
    screenshot: false,
    console: false,
  };
  const outcomes = await collect(
    playwright.mapPooledBrowsers(used.pool, ['a', 'b', 'c'], task, {
      isolation: 'storage',
      concurrency: 1,
      artifacts,
    }),
  );
  expect(outcomes.map((outcome) => outcome.artifacts.map((path) => basename(path)))).toEqual(
    Array.from({ length: 3 }, () => ['trace.zip']),
  );
});

it('collects the screenshot of a task that timed out', async () => {
  const hanging = async ({ page }: { page: Page }) => {
    await page.goto(titled('slow'));
    await new Promise(() => {});
  };
  const options = { taskTimeout: 3000, artifacts: { folder } };
  const [outcome] = await collect(playwright.mapPooledBrowsers(used.pool, ['a'], hanging, options));
  expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'TaskTimeoutError' } });
  expect(outcome!.artifacts.map((path) => basename(path))).toEqual(['screenshot.png']);
});

it('collects the log of a task that lost its browser', async () => {
  const losing = async (lease: {
    page: Page;
    input: string;
    session: { session_id: string };
    signal: AbortSignal;
  }) => {
    await task(lease);
    await used.pool.release(lease.session.session_id, { reuse: false });
    await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
  };
  const [outcome] = await collect(
    playwright.mapPooledBrowsers(used.pool, ['a'], losing, { artifacts: { folder } }),
  );
  expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'BrowserLostError' } });
  expect(outcome!.artifacts.map((path) => basename(path))).toEqual(['console.jsonl']);
});

describe('before anything is sent', () => {
  it('refuses a folder that can not be written', async () => {
    await using bench = await MapBench.start();
    const artifacts = { folder: '/dev/null/artifacts' };
    await expect(collect(bench.map(['a'], () => {}, { artifacts }))).rejects.toMatchObject({
      name: 'InvalidOptionError',
      option: 'artifacts.folder',
    });
    expect(bench.service.requests).toEqual([]);
  });

  it('refuses a trace in a context that tasks share', () => {
    const options = { isolation: 'none', pagesPerLease: 2, artifacts: { folder, trace: true } } as const;
    expect(() => playwright.mapPooledBrowsers(used.pool, ['a'], task, options)).toThrow(
      /^A context has one trace at a time, and with isolation none/,
    );
  });
});
