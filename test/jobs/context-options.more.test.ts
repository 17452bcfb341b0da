import { describe, expect, it } from 'vitest';
import { InvalidOptionError, type Isolation } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { useLocalPool } from '../support/local.js';
import { useSite } from '../support/site.js';
import { collect, valuesOf } from './support.js';

const used = useLocalPool();

const site = useSite(({ headers }, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end(headers.cookie ?? '');
});

interface AnyTask {
  input: string;
  page: { goto(url: string): Promise<unknown>; evaluate(script: string): Promise<unknown> };
}

/** Returns the user agent and the cookies that the task finds, and leaves a cookie. */
async function visit({ page, input }: AnyTask): Promise<string> {
  await page.goto(site.url);
  const found = await page.evaluate('[navigator.userAgent, document.body.innerText].join()');
  await page.evaluate(`document.cookie = 'of=${input}'`);
  return String(found);
}

const contextOptions = (userAgent: string) => ({ userAgent });
const OPTIONS = { concurrency: 1, ordered: true, contextOptions } as const;
const LIBRARIES = {
  Playwright: (inputs: string[], isolation: Isolation) =>
    playwright.mapPooledBrowsers(used.pool, inputs, visit, { ...OPTIONS, isolation }),
  Puppeteer: (inputs: string[], isolation: Isolation) =>
    puppeteer.mapPooledBrowsers(used.pool, inputs, visit, { ...OPTIONS, isolation }),
};

describe.each(Object.entries(LIBRARIES))('%s', (_, map) => {
  it.each<[Isolation, found: string[]]>([
    ['context', ['a,', 'a,', 'b,', 'a,']],
    ['storage', ['a,', 'a,', 'b,', 'a,']],
    // Nothing is cleared between equal tasks, and others never share a context.
    ['none', ['a,', 'a,of=a', 'b,', 'a,']],
  ])('%s: each task has a context with the options of its input', async (isolation, found) => {
    expect(await valuesOf(map(['a', 'a', 'b', 'a'], isolation))).toEqual(found);
  });
});

it('storage: the stored state and the permissions of the options are there for every task', async () => {
  const cookie = { name: 'user', value: 'ada', domain: '127.0.0.1', path: '/' };
  const fixed = { expires: -1, httpOnly: false, secure: false, sameSite: 'Lax' } as const;
  const task = async ({ page, input }: AnyTask) => {
    const found = await visit({ page, input });
    const { state } = (await page.evaluate(`navigator.permissions.query({ name: 'geolocation' })
      .then(({ state }) => ({ state }))`)) as { state: string };
    return [found.split(',').at(-1), state];
  };
  const run = (options: playwright.PlaywrightMapOptions['contextOptions']) =>
    valuesOf(
      playwright.mapPooledBrowsers(used.pool, ['1', '2'], task, {
        ...OPTIONS,
        isolation: 'storage',
        contextOptions: options,
      }),
    );
  const permissions = ['geolocation'];
  expect(await run({ permissions })).toEqual([
    ['', 'granted'],
    ['', 'granted'],
  ]);
  expect(await run({ storageState: { cookies: [{ ...cookie, ...fixed }], origins: [] } })).toEqual([
    ['user=ada', 'prompt'],
    ['user=ada', 'prompt'],
  ]);
});

it('fails the task whose options are refused or cannot be computed, without a retry, and goes on', async () => {
  const { granted } = used.local.stats();
  const computed = new Error('no account');
  const outcomes = await collect(
    playwright.mapPooledBrowsers(used.pool, ['No/Where', 'none', 'UTC'], visit, {
      ...OPTIONS,
      retries: 1,
      shouldRetry: (error) => error !== computed,
      contextOptions: (timezoneId) => {
        if (timezoneId === 'none') throw computed;
        return { timezoneId };
      },
    }),
  );
  expect(outcomes).toMatchObject([
    { status: 'rejected', attempts: 1, reason: { option: 'contextOptions' } },
    { status: 'rejected', attempts: 1, reason: computed },
    { status: 'fulfilled', attempts: 1 },
  ]);
  const fixed = { ...OPTIONS, contextOptions: { timezoneId: 'No/Where' } };
  const failing = collect(playwright.mapPooledBrowsers(used.pool, ['a', 'b'], visit, fixed));
  await expect(failing).rejects.toBeInstanceOf(InvalidOptionError);
  expect(used.local.stats().granted).toBe(granted + 2);
});
