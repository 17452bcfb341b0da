import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { RunEvent } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { Random } from '../support/random.js';
import { useLocalPool } from '../support/local.js';
import { kill, processesOf } from '../support/processes.js';
import { range } from './support.js';

const INPUTS = 300;
const used = useLocalPool({ pools: [{ name: 'test', size: 2 }] });

/** Kills the main process of a running browser. */
function killABrowser(random: Random): void {
  const browsers = processesOf(process.env['TMPDIR']!).filter(({ command }) => !command.includes('--type='));
  const chromes = browsers.filter(({ command }) => command.includes('--user-data-dir'));
  if (chromes.length > 0) kill(random.pick(chromes));
}

interface AnyTask {
  input: number;
  attempt: number;
  page: { evaluate<Value>(script: string): Promise<Value>; goto(url: string): Promise<unknown> };
  browser: { close(): Promise<void> };
}

it.each([
  ['Playwright', playwright.mapPooledBrowsers, 1],
  ['Puppeteer', puppeteer.mapPooledBrowsers, 2],
] as const)(
  `yields one outcome for each of ${INPUTS} inputs and releases every browser, although browsers are killed, closed or hang (%s)`,
  async (_name, map, seed) => {
    const random = new Random(seed);
    const events: RunEvent[] = [];
    const task = async ({ input, attempt, page, browser }: AnyTask) => {
      // The pool gives up when several browsers in a row end while they start.
      if (random.chance(0.02) && used.local.stats().starting === 0) killABrowser(random);
      if (random.chance(0.02)) void browser.close().catch(() => {});
      // Few, because each of them takes the whole timeout.
      const hang = attempt === 1 ? input % 150 : 0;
      if (hang === 40) await page.evaluate('new Promise(() => {})');
      if (hang === 70) await page.evaluate('while (true);');
      if (hang === 100) await sleep(100_000);
      return page.evaluate<number>(`${input} * 2`);
    };
    const outcomes = map(used.pool, range(INPUTS), task as never, {
      concurrency: 3,
      pagesPerLease: 2,
      isolation: 'none',
      tasksPerLease: 45,
      retries: 5,
      taskTimeout: 8000,
      retry: { minTimeout: 20, maxTimeout: 200 },
      onEvent: (event) => events.push(event),
    });
    const seen = new Map<number, unknown>();
    for await (const outcome of outcomes) {
      expect(seen.has(outcome.index)).toBe(false);
      seen.set(outcome.index, outcome.status === 'fulfilled' ? outcome.value : outcome.reason);
      if (outcome.status === 'fulfilled') expect(outcome.value).toBe(2 * outcome.index);
    }
    expect(seen.size).toBe(INPUTS);
    const count = (type: RunEvent['type']) => events.filter((event) => event.type === type).length;
    // A browser that is leased after its worker has stopped is also released.
    expect(count('released')).toBeGreaterThanOrEqual(count('acquired'));
    expect(count('release-failed')).toBe(0);
    await expect.poll(() => used.local.stats().leased).toBe(0);
    // Enough failures occurred to make the test meaningful.
    expect(count('browser-lost')).toBeGreaterThan(2);
  },
  900_000,
);
