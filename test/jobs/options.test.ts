import { expectTypeOf } from 'expect-type';
import type * as pw from 'playwright-core';
import type * as pp from 'puppeteer-core';
import { expect } from 'vitest';
import { enqueueInputs, workPooledBrowsers } from '../../src/bullmq.js';
import { InvalidOptionError, type BrowserPool, type Outcome } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { it } from './it.js';

const REFUSED: [option: string, value: unknown, message?: string][] = [
  ['concurrency', 0],
  ['concurrency', 1.5],
  ['pagesPerLease', '2'],
  ['isolation', 'page'],
  ['retries', -1],
  ['shouldRetry', true],
  ['stopAfterFailures', 0],
  ['taskTimeout', 0],
  ['tasksPerLease', 0],
  ['maxLeaseAge', Number.NaN],
  ['ordered', 'yes'],
  ['hostConcurrency', 0],
  ['hostDelay', -1],
  ['hostDelay', Number.POSITIVE_INFINITY],
  ['hostDelay', 2 ** 31],
  ['retry.minTimeout', { minTimeout: Number.POSITIVE_INFINITY }],
  ['hostOf', 'example.com'],
  ['total', -1],
  ['onProgress', true],
  ['name', 'a'.repeat(252)],
  ['checkpoint.path', ''],
  ['checkpoint.path', {}],
  ['checkpoint.resume', { path: 'a', resume: true }, 'checkpoint has no option resume.'],
  ['checkpoint', 1],
  ['acquireTimeout', -1],
  ['timeout', 100],
  ['context', 'new'],
  ['contextOptions', 'de-DE'],
  ['contextOptions', {}, 'has no checkContext'],
  ['awaitRelease', false],
  ['reconnect', true],
  ['concurency', 2, 'mapPooledBrowsers has no option concurency. Did you mean concurrency?'],
  ['acquireTimeOut', 2, 'mapPooledBrowsers has no option acquireTimeOut. Did you mean acquireTimeout?'],
  ['checkpont', 2, 'mapPooledBrowsers has no option checkpont. Did you mean checkpoint?'],
];

it.for(REFUSED)(
  'rejects %s: %j before any request is sent',
  async ([option, value, message = option], { bench }) => {
    const call = () => bench.map([1], () => {}, { [option.split('.')[0]!]: value });
    expect(call).toThrow(InvalidOptionError);
    expect(call).toThrow(expect.objectContaining({ option }) as Error);
    expect(call).toThrow(message);
    expect(bench.service.requests).toEqual([]);
  },
);

it.for([Number.POSITIVE_INFINITY, 2 ** 31, Number.NaN, 0, '30'])(
  'a queue refuses a time of %j, which Redis or a timer of BullMQ would take for another one',
  async (time, { bench }) => {
    const { connector } = bench;
    const work = (options: object) => workPooledBrowsers('a', bench.pool, () => 1, { connector, ...options });
    const calls = [
      ['lockDuration', work({ lockDuration: time })],
      ['stalledInterval', work({ stalledInterval: time })],
      ['limiter.duration', work({ limiter: { max: 1, duration: time } })],
      ['backoff.delay', enqueueInputs('a', [1], { backoff: { delay: time as number } })],
    ] as const;
    for (const [option, call] of calls)
      await expect(call).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION', option });
  },
);

it('accepts Infinity where it is the default', async ({ bench }) => {
  const names = ['taskTimeout', 'tasksPerLease', 'maxLeaseAge', 'stopAfterFailures'];
  const options = Object.fromEntries(names.map((name) => [name, Number.POSITIVE_INFINITY]));
  expect(await bench.run([1], () => {}, options)).toHaveLength(1);
});

it('refuses downloads of several pages over WebDriver BiDi, which does not name the page', ({ bench }) => {
  const options = { downloads: 'files', protocol: 'bidi', pagesPerLease: 2 } as const;
  expect(() => bench.map([1], () => {}, options)).toThrow(
    expect.objectContaining({ option: 'downloads' }) as Error,
  );
});

it('refuses isolation storage over WebDriver BiDi, which has no commands for it', ({ bench }) => {
  const map = () =>
    puppeteer.mapPooledBrowsers(bench.pool, [], () => {}, { protocol: 'bidi', isolation: 'storage' });
  expect(map).toThrow(InvalidOptionError);
  expect(map).toThrow(/BiDi.*isolation 'context'/);
});

it.for([undefined, null, 5, 'https://example.com', {}])('rejects %s as inputs', (inputs, { bench }) => {
  const refusal = expect.objectContaining({ option: 'inputs' }) as Error;
  expect(() => bench.map(inputs as never, () => {})).toThrow(refusal);
});

it('rejects a callback that is not a function', ({ bench }) => {
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
  const contextOptions = (input: string, index: number) => ({ locale: index === 0 ? 'de-DE' : input });
  const inContext = () => playwright.mapPooledBrowsers(pool, ['a'], () => {}, { contextOptions });
  const inferred = () =>
    playwright.mapPooledBrowsers(pool, [{ user: 'a' }], () => {}, {
      contextOptions: ({ user }) => ({ storageState: `${user}.json` }),
    });
  expectTypeOf(inContext).toBeFunction();
  expectTypeOf(inferred).toBeFunction();
  // @ts-expect-error Playwright has no such option.
  void (() => playwright.mapPooledBrowsers(pool, ['a'], () => {}, { contextOptions: { cookies: [] } }));
  // @ts-expect-error Playwright does not support BiDi.
  const bidi = () => playwright.mapPooledBrowsers(pool, [], () => {}, { protocol: 'bidi' });
  expect(bidi).toThrow(InvalidOptionError);
  const outcome = {} as Outcome<string, number>;
  if (outcome.status === 'fulfilled') expectTypeOf(outcome.value).toEqualTypeOf<number>();
  if (outcome.status === 'rejected') expectTypeOf(outcome.reason).toEqualTypeOf<unknown>();
});
