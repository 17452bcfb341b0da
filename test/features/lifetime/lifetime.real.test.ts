import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  LeaseExpiredError,
  LeaseOverError,
  mapPooledBrowsers,
  runOf,
  type Connector,
} from '../../../src/index.js';
import { playwright } from '../../../src/playwright.js';
import { puppeteer } from '../../../src/puppeteer.js';
import { DRIVERS } from '../../support/drivers.js';
import { titled, useLocalPool } from '../../support/local.js';

const used = useLocalPool();
const never = () => new Promise<never>(() => {});
const folderOf = () => mkdtempSync(join(tmpdir(), 'lifetime-'));
const destroyed = () => used.local.stats().destroyed;

describe.each(DRIVERS)('a lease with lifetime ($name)', ({ name, run, lease }) => {
  it('ends in its callback: the browser shows why, and is destroyed', async () => {
    const before = destroyed();
    // Over BiDi, pages have no console here.
    const artifacts = { folder: folderOf(), console: !name.includes('BiDi') };
    const error: unknown = await run(
      used.pool,
      async ({ page }) => {
        await page.goto(titled('last page'));
        await never();
      },
      { lifetime: 8000, artifacts },
    ).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LeaseExpiredError);
    const ended = runOf(error)!;
    expect(ended.artifacts.map((path) => basename(path))).toContain('screenshot.png');
    expect(ended).toMatchObject({ released: 'destroyed' });
    expect(destroyed()).toBe(before + 1);
  });

  it('is released though its holder never comes back, whose calls then say why', async () => {
    const held = await lease(used.pool, { lifetime: 8000 });
    const { page } = held;
    await page.goto(titled('held'));
    await expect.poll(() => used.local.stats().leased, { timeout: 20_000 }).toBe(0);
    const error: unknown = await page.title().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LeaseOverError);
    expect(String(error)).toContain('lifetime');
  });
});

it.each<[string, Connector<{ page: { goto(url: string): Promise<unknown> } }>]>([
  ['Playwright', playwright()],
  ['Puppeteer', puppeteer()],
])('a task that is cut by the end of its lease leaves a screenshot (%s)', async (_name, connector) => {
  const task = async ({ input, page }: { input: string; page: { goto(url: string): Promise<unknown> } }) => {
    await page.goto(titled(input));
    if (input === 'slow') await never();
    return input;
  };
  const artifacts = { folder: folderOf() };
  const options = { connector, concurrency: 1, lifetime: 10_000, artifacts } as const;
  const outcomes = [];
  for await (const outcome of mapPooledBrowsers(used.pool, ['slow', 'next'], task, options))
    outcomes.push(outcome);
  expect(outcomes).toMatchObject([
    { status: 'rejected', reason: expect.any(LeaseExpiredError) },
    { status: 'fulfilled', value: 'next' },
  ]);
  expect(outcomes[0]!.artifacts.map((path) => basename(path))).toContain('screenshot.png');
});
