import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { rm } from 'node:fs/promises';
import type { Page as PlaywrightPage } from 'playwright-core';
import type { Page as PuppeteerPage } from 'puppeteer-core';
import { afterEach, describe, expect, it } from 'vitest';
import { readCheckpoint, TaskResultError, type Outcome } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { titled, useLocalPool } from '../support/local.js';
import { collect, MapBench } from './support.js';

const path = join(tmpdir(), 'values.jsonl');
afterEach(() => rm(path, { force: true }));

const CYCLIC: Record<string, unknown> = { name: 'a' };
CYCLIC['self'] = CYCLIC;

const SHARED = { a: 1 };

class Product {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
  /** Methods are not part of the result. */
  rename(name: string): Product {
    return new Product(name);
  }
}

describe('a task with a checkpoint', () => {
  it.each<[string, unknown, string]>([
    ['a function', () => {}, 'The task returned a function. Return data that JSON can hold'],
    ['a symbol', Symbol('a'), 'The task returned a symbol.'],
    ['a bigint', 1n, 'The task returned a bigint. Return String(value).'],
    [
      'an object that contains itself',
      { rows: [CYCLIC] },
      'an object that contains itself as value.rows[0].self.',
    ],
    ['a forgotten await', { title: Promise.resolve('a') }, 'a promise as value.title. Add await.'],
    ['a Map', new Map([['a', 1]]), 'an object of class Map.'],
    ['a nested function', { rows: [{ click: () => {} }] }, 'a function as value.rows[0].click.'],
    ['an error', new TypeError('no'), 'an object of class TypeError.'],
  ])('fails when it returns %s, once, and its result says what to return', async (_what, value, message) => {
    await using bench = await MapBench.start();
    const task = () => value as object;
    const outcomes = await collect(bench.map(['a'], task, { checkpoint: path, retries: 3 }));
    expect(outcomes).toMatchObject([{ status: 'rejected', attempts: 1 }]);
    const { reason } = outcomes[0] as { reason?: unknown };
    expect(reason).toBeInstanceOf(TaskResultError);
    expect(reason).toMatchObject({
      code: 'ERR_TASK_RESULT',
      message: expect.stringContaining(message) as string,
    });
    const [record] = await stored();
    expect(record).toMatchObject({ status: 'rejected', reason: { name: 'TaskResultError' } });
  });

  it.each<[string, unknown, unknown]>([
    ['nothing', undefined, undefined],
    ['null', null, null],
    ['a nested array', { rows: [[1, 'a', true, null]] }, { rows: [[1, 'a', true, null]] }],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ['the same object twice', [SHARED, SHARED], [{ a: 1 }, { a: 1 }]],
    [
      'a date and a URL',
      [new Date(0), new URL('https://a.test')],
      ['1970-01-01T00:00:00.000Z', 'https://a.test/'],
    ],
    ['an object of its own class', new Product('tea'), { name: 'tea' }],
    ['data with the name of a method', { on: 'monday' }, { on: 'monday' }],
  ])('succeeds when it returns %s', async (_what, value, expected) => {
    await using bench = await MapBench.start();
    const outcomes = await collect(bench.map(['a'], () => value, { checkpoint: path }));
    expect(outcomes).toMatchObject([{ status: 'fulfilled' }]);
    expect((await stored())[0]).toEqual(
      expect.objectContaining(expected === undefined ? {} : { value: expected }),
    );
  });
});

it('accepts any value without a checkpoint', async () => {
  await using bench = await MapBench.start();
  const outcomes = await collect(bench.map(['a'], () => new Map([['a', 1n]])));
  expect(outcomes).toMatchObject([{ status: 'fulfilled', value: new Map([['a', 1n]]) }]);
});

describe('objects of an automation library are not data', () => {
  const used = useLocalPool();
  const options = { checkpoint: path, concurrency: 1, ordered: true } as const;

  it('Playwright', async () => {
    const values: Record<string, (page: PlaywrightPage) => unknown> = {
      Page: (page) => page,
      Response: (page) => page.goto(used.local.baseUrl),
      Locator: (page) => page.locator('body'),
      JSHandle: (page) => page.evaluateHandle('({})'),
      ElementHandle: (page) => page.$('body'),
      BrowserContext: (page) => page.context(),
      Keyboard: (page) => page.keyboard,
    };
    const outcomes = playwright.mapPooledBrowsers(
      used.pool,
      Object.keys(values),
      ({ page, input }) => values[input]!(page),
      options,
    );
    await expectRefused(outcomes);
  });

  it.each(['cdp', 'bidi'] as const)('Puppeteer over %s', async (protocol) => {
    const values: Record<string, (page: PuppeteerPage) => unknown> = {
      Page: (page) => page,
      HTTPResponse: (page) => page.goto(used.local.baseUrl),
      Locator: (page) => page.locator('body'),
      JSHandle: (page) => page.evaluateHandle('({})'),
      ElementHandle: (page) => page.$('body'),
      BrowserContext: (page) => page.browserContext(),
      Frame: (page) => page.mainFrame(),
    };
    const outcomes = puppeteer.mapPooledBrowsers(
      used.pool,
      Object.keys(values),
      async ({ page, input }) => {
        await page.goto(titled('a'));
        return values[input]!(page);
      },
      { ...options, protocol },
    );
    await expectRefused(outcomes);
  });

  async function expectRefused(outcomes: AsyncIterable<Outcome<string, unknown>>): Promise<void> {
    const messages = (await collect(outcomes)).map((outcome) => [
      outcome.input,
      outcome.status === 'rejected' ? (outcome.reason as Error).message : outcome.value,
    ]);
    const expected = messages.map(([input]) => [
      input,
      expect.stringMatching(
        new RegExp(`^The task returned an object of class \\w*${String(input)}\\w*\\. Return data`),
      ) as string,
    ]);
    expect(messages).toEqual(expected);
    expect(messages.length).toBeGreaterThan(0);
  }
});

async function stored(): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const record of readCheckpoint(path)) all.push(record);
  return all;
}
