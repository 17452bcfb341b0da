import { expect, it, vi } from 'vitest';
import type { Dialog, ElementHandle, HTTPRequest, Page } from 'puppeteer-core';
import { withPooledBrowser } from '../../src/index.js';
import { puppeteer, type PuppeteerHandles } from '../../src/puppeteer.js';
import { useLocalPool } from '../support/local.js';
import { changesOf, methodsOf, Noting, type Notes } from '../support/noting.js';
import { useSite } from '../support/site.js';

const used = useLocalPool();
const site = useSite((_, response) => {
  response.setHeader('content-type', 'text/html');
  response.end(`<title>Shop</title><input id=email><input type=file id=file><a href=/next target=_blank>Next</a>
    <button onclick="alert('Hello')">Save</button><iframe srcdoc="<p>Terms</p>"></iframe>`);
});

type Handles = PuppeteerHandles<'new'>;

const noting = new Noting(puppeteer());

const PROTOCOLS = ['cdp', 'bidi'] as const;

/** Runs a callback with Puppeteer on a leased browser, in a new context. */
function run<Value>(protocol: (typeof PROTOCOLS)[number], fn: (handles: Handles) => Promise<Value>) {
  const { connector } = noting;
  return withPooledBrowser(used.pool, (lease) => fn(lease as unknown as Handles), {
    connector,
    protocol,
    context: 'new',
  });
}

it.each(PROTOCOLS)('notes each call of Puppeteer once, without what was typed, over %s', async (protocol) => {
  await run(protocol, async (handles) => {
    const { page, browser } = handles;
    const { calls, stop } = noting.note(handles);
    page.on('dialog', (dialog: Dialog) => void dialog.accept('hidden1'));
    page.on('request', async (request: HTTPRequest) => {
      if (request.isNavigationRequest()) await page.browserContext().cookies();
      await request.continue();
    });
    await page.setRequestInterception(true);
    await page.goto(`${site.url}/?q=hidden2`);
    page.removeAllListeners('request');
    await page.setRequestInterception(false);
    await page.type('#email', 'hidden3');
    await page.locator('#email').setTimeout(20_000).fill('hidden4');
    for (const key of ['Enter', 'Tab', 'a'] as const) await page.keyboard.press(key);
    await page.click('button');
    const handle = await page.$('#email');
    await handle!.type('hidden5');
    await page.evaluate((value) => value, 'hidden6');
    await page.$eval('#email', (input) => input.id);
    const input = await page.waitForSelector('input[type=file]');
    await (input as ElementHandle<HTMLInputElement>).uploadFile('/etc/hostname');
    await page.frames()[1]!.evaluate(() => 1);
    const popup = await new Promise<Page>((resolve) => {
      page.once('popup', (opened) => resolve(opened!));
      void page.click('a');
    });
    await popup.bringToFront();
    const context = await browser.createBrowserContext();
    const other = await context.newPage();
    await other.keyboard.type('hidden7');
    await context.close();
    page.locator('p').filter(() => true);
    page.url();
    stop();
    await page.title();
    expect(calls).toEqual([
      'page.setRequestInterception(true)',
      `page.goto("${site.url}/?q=[redacted]")`,
      'context.cookies()',
      'page.setRequestInterception(false)',
      'page.type("#email")',
      'locator("#email").fill(…)',
      'keyboard.press("Enter")',
      'keyboard.press("Tab")',
      'keyboard.press(…)',
      'page.click("button")',
      'dialog.accept(…)',
      'page.$("#email")',
      'elementHandle.type(…)',
      'page.evaluate(…)',
      'page.$eval("#email")',
      'page.waitForSelector("input[type=file]")',
      'elementHandle.uploadFile(["hostname"])',
      'frame.evaluate(…)',
      'page.click("a")',
      'page.bringToFront()',
      'browser.createBrowserContext()',
      'context.newPage()',
      'keyboard.type(…)',
      'context.close()',
    ]);
  });
});

it.each(PROTOCOLS)(
  'leaves errors and stacks as they are over %s, and nothing of it afterwards',
  async (protocol) => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    await run(protocol, async (handles) => {
      const { page, browser } = handles;
      await page.goto(site.url);
      const failing = [
        async () => page.click('#none'),
        async () => page.locator('#none').setTimeout(300).fill('hidden1'),
        async () => page.keyboard.press('hidden2' as 'a'),
        async () =>
          page.evaluate(() => {
            throw new Error('mine');
          }),
      ];
      const failures: string[][] = [];
      let notes: Notes | undefined;
      const objects = [
        page,
        page.mainFrame(),
        page.keyboard,
        page.browserContext(),
        browser,
        page.locator('a'),
      ];
      const before = methodsOf(objects);
      for (const isNoted of [false, true]) {
        if (isNoted) notes = noting.note(handles);
        failures.push([]);
        for (const call of failing) {
          const error = await call().catch((reason: Error) => reason);
          // A stack also has the lines of the replaced methods, which are named as those of Node, and its length is limited.
          const lines = (error as Error).stack!.split('\n');
          failures.at(-1)!.push(lines.filter((line) => !/\(node:|nesting\.ts/.test(line)).join('\n'));
        }
      }
      const { calls, stop } = notes!;
      expect(changesOf(before, methodsOf(objects))).toContain('click');
      void page.keyboard.press('hidden2' as 'a');
      await expect.poll(() => unhandled.mock.calls.length).toBe(1);
      await page.title();
      stop();
      expect(changesOf(before, methodsOf(objects))).toEqual([]);
      expect(failures[0]![0]).toContain('puppeteer-calls.real.test.ts');
      expect(failures[0]![3]).toContain('puppeteer-calls.real.test.ts');
      expect(failures[1]).toEqual(failures[0]);
      expect(calls.slice(0, 4)).toEqual([
        'page.click("#none") ✗ No element found for selector: #none',
        'locator("#none").fill(…) ✗ Timed out after waiting 300ms',
        'keyboard.press(…) ✗ Unknown key: "…"',
        'page.evaluate(…) ✗ mine',
      ]);
    });
    process.off('unhandledRejection', unhandled);
    expect(unhandled).toHaveBeenCalledTimes(1);
  },
);
