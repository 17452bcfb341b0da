import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BrowserPool, type Outcome, type RunEvent } from '../../../src/index.js';
import { mapPooledBrowsers } from '../../../src/playwright.js';
import { cdp } from '../../../src/services.js';
import { usePerson } from '../../local/pages/support.js';
import { colourShown } from '../../recorder/page/support.js';
import { startChromium, type Chromium } from '../../support/chromium.js';
import { currentTime, readReplay, RECORD, told } from './support.js';

const all = mkdtempSync(join(tmpdir(), 'failures-'));
const person = usePerson();
let browser: Chromium;
let pool: BrowserPool<{ readonly id: string }>;
beforeAll(async () => {
  browser = await startChromium();
  pool = new BrowserPool('shop', { service: cdp(browser.url) });
});
afterAll(async () => {
  await pool?.close();
  await browser?.[Symbol.asyncDispose]();
  rmSync(all, { recursive: true });
});

const filled = (colour: string) => `data:text/html,<body style="background:${colour}">`;
const recordings = (folder: string) => readdirSync(folder).filter((name) => name.startsWith('20'));

/** Runs a map in one lease. An input is what its attempts do, one after another. */
async function run(inputs: readonly string[], recording: object) {
  let last: Extract<RunEvent, { type: 'replays' }> | undefined;
  const outcomes: Outcome<string, void>[] = [];
  const job = mapPooledBrowsers(
    pool,
    inputs,
    async ({ page, input, attempt }) => {
      const [colour = '', ...ends] = input.split(' ');
      await page.goto(filled(colour));
      if (ends[attempt - 1] === 'fails') throw new Error(`No price of ${colour}.`);
    },
    {
      ...RECORD,
      recording,
      retries: 1,
      retry: { minTimeout: 10, maxTimeout: 10 },
      concurrency: 1,
      ordered: true,
      onEvent: (event) => {
        if (event.type === 'replays') last = event;
      },
    },
  );
  for await (const outcome of job) outcomes.push(outcome as never);
  return { outcomes, replays: last!.replays };
}

it('shows the page of an input that failed at the moment of its failure', async () => {
  const folder = join(all, 'pictures');
  const { outcomes } = await run(['red', 'blue fails fails', 'lime', 'yellow fails fails'], { folder });
  for (const [index, colour] of [
    [1, 'blue'],
    [3, 'yellow'],
  ] as const) {
    const page = await person.open(outcomes[index]!.moment!);
    await expect.poll(() => currentTime(page)).toBeGreaterThan(0);
    await expect.poll(() => colourShown(page)).toBe(colour);
  }
});

it('counts an input that failed in the end, and no attempt whose retry succeeded', async () => {
  const flaky = await run(['red', 'blue fails'], { folder: join(all, 'flaky') });
  const { facts } = readReplay(flaky.replays[0]!);
  expect(facts.result).toBe('succeeded');
  expect(told(facts, 'failed', 'attempt-failed')).toEqual(['attempt-failed No price of blue.']);
  const { replays, outcomes } = await run(['red fails', 'blue fails fails'], { folder: join(all, 'failed') });
  const page = await person.open(replays[0]!.replay_view_url!);
  await page.getByText('Failed', { exact: true }).first().waitFor();
  await page.getByRole('button', { name: 'Show the failure' }).click();
  expect(page.url()).toBe(outcomes[1]!.moment);
  await expect.poll(() => colourShown(page)).toBe('blue');
  const list = await person.open(new URL('../replays.html', replays[0]!.replay_view_url).href);
  await list.getByRole('heading', { name: 'blue fails fails' }).waitFor();
});

it('keeps no recording of attempts whose retry succeeded, and links to none that is removed', async () => {
  const folder = join(all, 'kept');
  const removed = await run(['red', 'blue fails'], { folder, keepOnly: 'failures' });
  await expect.poll(() => recordings(folder)).toEqual([]);
  expect(removed.replays).toEqual([]);
  expect(removed.outcomes.map(({ replays }) => replays)).toEqual([[], []]);
  const kept = await run(['red', 'blue fails fails'], { folder, keepOnly: 'failures' });
  expect(recordings(folder)).toHaveLength(1);
  expect(kept.outcomes.map(({ replays }) => replays.length)).toEqual([0, 1]);
});

it('does not count the end of a job as a failure', async () => {
  const folder = join(all, 'ended');
  const job = mapPooledBrowsers(
    pool,
    ['red', 'blue'],
    ({ page, input }) => page.goto(filled(input)).then(String),
    {
      ...RECORD,
      recording: { folder, keepOnly: 'failures' },
      concurrency: 1,
    },
  );
  for await (const outcome of job) {
    expect(outcome.status).toBe('fulfilled');
    break;
  }
  await expect.poll(() => recordings(folder)).toEqual([]);
});
