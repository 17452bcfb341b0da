import { expect as assertThat } from '@playwright/test';
import { chromium, type Page } from 'playwright-core';
import { expect, it, vi } from 'vitest';
import { withPooledBrowser } from '../../src/index.js';
import { findBrowser } from '../../src/local.js';
import { playwright, type PlaywrightHandles } from '../../src/playwright.js';
import { useLocalPool } from '../support/local.js';
import { changesOf, methodsOf, Noting, type Notes } from '../support/noting.js';
import { useSite } from '../support/site.js';

const used = useLocalPool();
const site = useSite((_, response) => {
  response.setHeader('content-type', 'text/html');
  response.end(`<title>Shop</title><input id=email><input type=file id=file><a href=/next target=_blank>Next</a>
    <button onclick="alert('Hello')">Save</button><iframe srcdoc="<p>Terms</p>"></iframe>`);
});

const noting = new Noting<PlaywrightHandles>(playwright());

/** Runs a callback with Playwright on a leased browser, in a new context. */
function run<Value>(fn: (handles: PlaywrightHandles) => Promise<Value>) {
  return withPooledBrowser(used.pool, fn, { connector: noting.connector, context: 'new' });
}

/** What a call rejects with: the first line of the message and of the stack, and the lines of the callers. The rest is a log. */
async function failureOf(call: () => Promise<unknown>): Promise<string[]> {
  const error = await call().then(
    () => undefined,
    (reason: Error) => reason,
  );
  const [first = '', ...rest] = error!.stack!.split('\n');
  return [error!.message.split('\n')[0]!, first, ...rest.filter((line) => line.startsWith('    at '))];
}

it('notes each call of Playwright once, with its selector or URL, and without what was typed', async () => {
  await run(async (handles) => {
    const { page, context } = handles;
    const { calls, stop } = noting.note(handles);
    await page.goto(`${site.url.replace('//', '//me:hidden1@')}/?q=hidden2`);
    await page.fill('#email', 'hidden3');
    await page.locator('#email').fill('hidden4');
    await page.getByRole('textbox').first().pressSequentially('hi5');
    await page.keyboard.type('hidden6');
    for (const key of ['Enter', 'Control+a', 'Shift+B', 'c', 'KeyD']) await page.keyboard.press(key);
    await page.press('#email', 'e');
    await page.evaluate((value) => value, 'hidden7');
    await page.waitForSelector('button');
    const handle = await page.$('#email');
    await handle!.fill('hidden8');
    await page.mouse.move(3, 4);
    await page.setInputFiles('#file', {
      name: '/hidden9/photo.png',
      mimeType: 'image/png',
      buffer: Buffer.of(1),
    });
    await page.frameLocator('iframe').locator('p').textContent();
    await page.frames()[1]!.evaluate(() => 1);
    await context.addCookies([{ name: 'a', value: 'hidden10', url: site.url }]);
    await page.setExtraHTTPHeaders({ authorization: 'hidden11' });
    await page.goto('data:text/html,hidden12');
    await page.setContent('hidden13');
    await context.request.post(`${site.url}/pay`, { data: 'hidden14' });
    const cdp = await context.newCDPSession(page);
    await cdp.send('Runtime.evaluate', { expression: '"hidden15"' });
    page.locator('p').first();
    page.url();
    stop();
    await page.title();
    const url = `http://[redacted]@${site.url.slice('http://'.length)}/?q=[redacted]`;
    expect(calls).toEqual([
      `page.goto("${url}")`,
      'page.fill("#email")',
      "locator('#email').fill(…)",
      "getByRole('textbox').first().pressSequentially(…)",
      'keyboard.type(…)',
      'keyboard.press("Enter")',
      'keyboard.press("Control+a")',
      'keyboard.press(…)',
      'keyboard.press(…)',
      'keyboard.press(…)',
      'page.press("#email")',
      'page.evaluate(…)',
      'page.waitForSelector("button")',
      'page.$("#email")',
      'elementHandle.fill(…)',
      'mouse.move(3, 4)',
      'page.setInputFiles("#file", "photo.png")',
      "locator('iframe').contentFrame().locator('p').textContent()",
      'frame.evaluate(…)',
      'context.addCookies(…)',
      'page.setExtraHTTPHeaders(…)',
      'page.goto("data:text/html,…")',
      'page.setContent(…)',
      `request.post("${site.url}/pay")`,
      'context.newCDPSession(…)',
      'cdpSession.send("Runtime.evaluate")',
    ]);
  });
});

it('notes what handlers of dialogs, routes and pop-ups call while another call runs', async () => {
  await run(async (handles) => {
    const { page, browser } = handles;
    const { calls, stop } = noting.note(handles);
    page.on('dialog', (dialog) => void dialog.accept());
    await page.route('**/next', async (route) => {
      await page.title();
      await route.continue();
    });
    await page.goto(site.url);
    await page.getByRole('button', { name: 'Save' }).click();
    const [popup] = await Promise.all([page.waitForEvent('popup'), page.click('a')]);
    await popup.keyboard.press('Tab');
    await page.goto(`${site.url}/next`);
    const context = await browser.newContext();
    await (await context.newPage()).touchscreen.tap(1, 2).catch(() => {});
    await context.close();
    stop();
    expect(calls).toEqual([
      'page.route("**/next")',
      `page.goto("${site.url}")`,
      "getByRole('button', { name: 'Save' }).click()",
      'dialog.accept()',
      'page.waitForEvent("popup")',
      'page.click("a")',
      'keyboard.press("Tab")',
      `page.goto("${site.url}/next")`,
      'page.title()',
      'browser.newContext()',
      'context.newPage()',
      expect.stringMatching(/^touchscreen\.tap\(1, 2\)/),
      'context.close()',
    ]);
  });
});

it('leaves errors, their stacks and unhandled rejections as they are, and notes the first line of an error', async () => {
  const unhandled = vi.fn();
  process.on('unhandledRejection', unhandled);
  await run(async (handles) => {
    const failing = (page: Page) => [
      () => page.locator('#none').fill('hidden1', { timeout: 300 }),
      () => page.fill('button', 'hidden2'),
      () => page.press('#email', 'hidden3'),
      () => page.evaluate(() => Promise.reject(new Error('mine'))),
      () => page.goto('http://me:hidden4@127.0.0.1:1/?t=hidden5'),
    ];
    const { context } = handles;
    const failures: string[][][] = [];
    let notes: Notes | undefined;
    for (const isNoted of [false, true]) {
      const page = await context.newPage();
      await page.goto(site.url);
      if (isNoted) notes = noting.note(handles);
      const texts: string[][] = [];
      for (const call of failing(page)) texts.push(await failureOf(call));
      failures.push(texts);
    }
    const { calls, stop } = notes!;
    void handles.page.keyboard.press('hidden3');
    await expect.poll(() => unhandled.mock.calls.length).toBe(1);
    await handles.page.title();
    stop();
    const [before, after] = failures;
    expect(before![0]!.join('\n')).toContain('playwright-calls.real.test.ts');
    expect(after).toEqual(before);
    expect(calls.slice(0, 5)).toEqual([
      "locator('#none').fill(…) ✗ locator.fill: Timeout 300ms exceeded.",
      expect.stringMatching(/^page\.fill\("button"\) ✗ page\.fill: Error: Element is not an <input>[^\n]*$/),
      'page.press("#email") ✗ page.press: Unknown key: "…"',
      'page.evaluate(…) ✗ page.evaluate: Error: mine',
      expect.stringMatching(
        / ✗ page\.goto: net::\w+ at http:\/\/\[redacted\]@127\.0\.0\.1:1\/\?t=\[redacted\]$/,
      ),
    ]);
  });
  process.off('unhandledRejection', unhandled);
  expect(unhandled).toHaveBeenCalledTimes(1);
});

it('notes only the calls of its browser, context or page', async () => {
  await using own = await chromium.launch({ executablePath: await findBrowser(), args: ['--no-sandbox'] });
  await run(async (handles) => {
    const { page, context, browser } = handles;
    const other = await context.newPage();
    const foreign = await (await browser.newContext()).newPage();
    const pages = [page, other, foreign, await own.newPage()];
    const scopes = ['page', 'context', 'browser'] as const;
    const notes = scopes.map((scope) => noting.note(handles, scope));
    await page.goto(site.url);
    const [popup] = await Promise.all([page.waitForEvent('popup'), page.locator('a').click()]);
    for (const one of [popup, ...pages]) {
      await one.keyboard.press('Tab');
      await one.locator('html').count();
    }
    notes.forEach(({ stop }) => stop());
    await page.locator('html').count();
    const opening = [`page.goto("${site.url}")`, 'page.waitForEvent("popup")', "locator('a').click()"];
    const each = ['keyboard.press("Tab")', "locator('html').count()"];
    // The page and its pop-up; with the other page of the context; with the page of another context.
    expect(notes.map(({ calls }) => calls)).toEqual(
      [2, 3, 4].map((count) => [...opening, ...Array.from({ length: count }, () => each).flat()]),
    );
  });
});

it('patches the classes only during an observation, and a spy of a test still works', async () => {
  await run(async (handles) => {
    const { page, browser, context } = handles;
    const objects = [page, page.mainFrame(), page.locator('a'), page.keyboard, context, browser];
    const before = methodsOf(objects);
    expect(before.size).toBeGreaterThan(6);
    const lengthBefore = page.click.length;
    const { calls, stop } = noting.note(handles);
    expect(changesOf(before, methodsOf(objects))).toContain('click');
    expect(page.click.name).toBe('click');
    expect(page.click).toHaveLength(lengthBefore);
    const spy = vi.spyOn(page, 'title').mockResolvedValue('spied');
    expect(await page.title()).toBe('spied');
    spy.mockRestore();
    expect(await page.title()).toBe('');
    expect(calls).toEqual(['page.title()']);
    stop();
    expect(changesOf(before, methodsOf(objects))).toEqual([]);
    expect(await page.title()).toBe('');
    expect(calls).toHaveLength(1);
  });
});

it('notes assertions of @playwright/test, with those that fail', async () => {
  await run(async (handles) => {
    const { page } = handles;
    await page.goto(site.url);
    const { calls, stop } = noting.note(handles);
    await assertThat(page).toHaveTitle('Shop');
    await assertThat(page.locator('#email')).toBeVisible();
    await assertThat(page.locator('#email')).not.toHaveValue('hidden1');
    const failed = assertThat(page.getByRole('button', { name: 'Save' })).toHaveText('hidden2', {
      timeout: 300,
    });
    await expect(failed).rejects.toThrow('Save');
    stop();
    expect(calls).toEqual([
      'expect(page).toHaveTitle()',
      "expect(locator('#email')).toBeVisible()",
      "expect(locator('#email')).not.toHaveValue()",
      "expect(getByRole('button', { name: 'Save' })).toHaveText() ✗ The assertion failed.",
    ]);
  });
});

it('notes nothing that the lease itself does with Playwright', async () => {
  await run(async (handles) => {
    const { calls, stop } = noting.note(handles);
    const observation = noting.connection.observe!({ handles, scope: 'page' });
    const [take] = observation.screenshots();
    expect((await take!()).length).toBeGreaterThan(100);
    const workspace = await noting.connection.openWorkspace!('storage');
    await workspace.reset();
    await workspace.close();
    observation.stop();
    stop();
    expect(calls).toEqual([]);
  });
});
