import { join } from 'node:path';
import { tmpdir } from 'node:os';
import type { Page as PlaywrightPage } from 'playwright-core';
import type { Page as PuppeteerPage } from 'puppeteer-core';
import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { titled, useLocalPool } from '../support/local.js';
import { collect } from './support.js';

describe('a task with a checkpoint fails when it returns an object of', () => {
  const used = useLocalPool();
  const optionsFor = (name: string) =>
    ({ checkpoint: join(tmpdir(), `${name}.jsonl`), concurrency: 1, ordered: true }) as const;

  /** What the page of either library returns. */
  const VALUES: Record<string, (page: PlaywrightPage & PuppeteerPage) => unknown> = {
    Page: (page) => page,
    Response: (page) => page.goto(used.local.baseUrl),
    Locator: (page) => page.locator('body'),
    JSHandle: (page) => page.evaluateHandle('({})'),
    ElementHandle: (page) => page.$('body'),
    Frame: (page) => page.mainFrame(),
    Keyboard: (page) => page.keyboard,
  };
  const OF_BOTH = ['Page', 'Response', 'Locator', 'JSHandle', 'ElementHandle', 'Frame', 'BrowserContext'];
  const OF_PLAYWRIGHT = [...OF_BOTH, 'Keyboard'];
  const task = async ({ page, context, input }: { page: object; context: object; input: string }) => {
    if (input === 'BrowserContext') return context;
    const either = page as PlaywrightPage & PuppeteerPage;
    await either.goto(titled('a'));
    return VALUES[input]!(either);
  };

  it('Playwright', async () => {
    const options = optionsFor('playwright');
    await expectRefused(OF_PLAYWRIGHT, playwright.mapPooledBrowsers(used.pool, OF_PLAYWRIGHT, task, options));
  });

  it.each(['cdp', 'bidi'] as const)('Puppeteer over %s', async (protocol) => {
    const options = { ...optionsFor(protocol), protocol };
    await expectRefused(OF_BOTH, puppeteer.mapPooledBrowsers(used.pool, OF_BOTH, task, options));
  });

  async function expectRefused(
    names: string[],
    outcomes: AsyncIterable<Outcome<string, unknown>>,
  ): Promise<void> {
    const messages = (await collect(outcomes)).map((outcome) => [
      outcome.input,
      outcome.status === 'rejected' ? (outcome.reason as Error).message : outcome.value,
    ]);
    const refusal = (name: string) =>
      new RegExp(`^The task returned an object of class \\w*${name}\\w*\\. Return data`);
    expect(messages).toEqual(names.map((name) => [name, expect.stringMatching(refusal(name))]));
  }
});
