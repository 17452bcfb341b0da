import { expectTypeOf } from 'expect-type';
import type * as pw from 'playwright-core';
import type * as pp from 'puppeteer-core';
import { expect, it } from 'vitest';
import { InvalidOptionError, type BrowserPool, type Outcome } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { collect, MapBench } from './support.js';

it.each<[string, object]>([
  ['concurrency', { concurrency: 0 }],
  ['concurrency', { concurrency: 1.5 }],
  ['pagesPerLease', { pagesPerLease: '2' }],
  ['isolation', { isolation: 'page' }],
  ['retries', { retries: -1 }],
  ['shouldRetry', { shouldRetry: true }],
  ['stopAfterFailures', { stopAfterFailures: 0 }],
  ['taskTimeout', { taskTimeout: 0 }],
  ['tasksPerLease', { tasksPerLease: 0 }],
  ['maxLeaseAge', { maxLeaseAge: Number.NaN }],
  ['ordered', { ordered: 'yes' }],
  ['total', { total: -1 }],
  ['onProgress', { onProgress: true }],
  ['name', { name: 'a'.repeat(252) }],
  ['acquireTimeout', { acquireTimeout: -1 }],
  ['timeout', { timeout: 100 }],
  ['context', { context: 'new' }],
  ['awaitRelease', { awaitRelease: false }],
  ['reconnect', { reconnect: true }],
  ['concurency', { concurency: 2 }],
])('rejects %s in %o before any request is sent', async (option, options) => {
  await using bench = await MapBench.start();
  const call = () => bench.map([1], () => {}, options);
  expect(call).toThrow(InvalidOptionError);
  expect(call).toThrow(expect.objectContaining({ option }) as Error);
  expect(bench.service.requests).toEqual([]);
});

it.each([
  ['concurency', 'Did you mean concurrency?'],
  ['acquireTimeOut', 'Did you mean acquireTimeout?'],
  ['checkpont', 'Did you mean checkpoint?'],
])('suggests a similar option for the unknown option %s', async (option, suggestion) => {
  await using bench = await MapBench.start();
  const call = () => bench.map([1], () => {}, { [option]: 2 });
  expect(call).toThrow(`mapPooledBrowsers has no option ${option}. ${suggestion}`);
});

it('accepts Infinity where it is the default', async () => {
  await using bench = await MapBench.start();
  const endless = Number.POSITIVE_INFINITY;
  const options = {
    taskTimeout: endless,
    tasksPerLease: endless,
    maxLeaseAge: endless,
    stopAfterFailures: endless,
  };
  expect(await collect(bench.map([1], () => {}, options))).toHaveLength(1);
});

it.each([undefined, null, 5, 'https://example.com', {}])('rejects %s as inputs', async (inputs) => {
  await using bench = await MapBench.start();
  expect(() => bench.map(inputs as never, () => {})).toThrow(
    expect.objectContaining({ option: 'inputs' }) as Error,
  );
});

it('rejects a callback that is not a function', async () => {
  await using bench = await MapBench.start();
  expect(() => bench.map([], undefined as never)).toThrow(expect.objectContaining({ option: 'fn' }) as Error);
});

it('infers the types of inputs, values and pages for each library', () => {
  const pool = {} as BrowserPool;
  const withPlaywright = () =>
    playwright.mapPooledBrowsers(pool, ['a'], async ({ page, context, input, index, attempt, signal }) => {
      expectTypeOf(page).toEqualTypeOf<pw.Page>();
      expectTypeOf(context).toEqualTypeOf<pw.BrowserContext>();
      expectTypeOf(input).toEqualTypeOf<string>();
      expectTypeOf([index, attempt]).toEqualTypeOf<number[]>();
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      return { title: await page.title() };
    });
  expectTypeOf(withPlaywright).returns.toExtend<AsyncIterable<Outcome<string, { title: string }>>>();
  const withPuppeteer = () =>
    puppeteer.mapPooledBrowsers(pool, new Set([1]), ({ page, context, input }) => {
      expectTypeOf(page).toEqualTypeOf<pp.Page>();
      expectTypeOf(context).toEqualTypeOf<pp.BrowserContext>();
      return input;
    });
  expectTypeOf(withPuppeteer).returns.toExtend<AsyncIterable<Outcome<number, number>>>();
  // @ts-expect-error Playwright does not support BiDi.
  const bidi = () => playwright.mapPooledBrowsers(pool, [], () => {}, { protocol: 'bidi' });
  expect(bidi).toThrow(InvalidOptionError);
  const outcome = {} as Outcome<string, number>;
  if (outcome.status === 'fulfilled') expectTypeOf(outcome.value).toEqualTypeOf<number>();
  if (outcome.status === 'rejected') expectTypeOf(outcome.reason).toEqualTypeOf<unknown>();
});
