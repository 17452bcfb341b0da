import { chromium, type Browser, type Frame, type Page } from 'playwright-core';
import { expect, it } from 'vitest';
import * as playwright from '../../../src/playwright.js';
import { useLocalPool } from '../../support/local.js';
import { useSite } from '../../support/site.js';
import { answer, clickAt, control, LOGIN, useHandoffs } from './support.js';

const viewport = { width: 800, height: 600 };
// As a whole Chromium, the headless shell then has a process for each site.
const used = useLocalPool({
  pools: [{ name: 'test', size: 1, viewport }],
  args: ['--site-per-process'],
});
const other = useSite((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end(LOGIN);
});
const site = useSite(({ url }, response) => {
  const from = { '/other-site': other.as('localhost'), '/other-origin': other.url }[url!];
  const frame = `<!doctype html><body style="margin:0"><iframe src="${from}" width="700" height="500">`;
  response.writeHead(200, { 'content-type': 'text/html' }).end(from === undefined ? LOGIN : frame);
});
const { open, onEvent } = useHandoffs();

/** Opens a page of the site in a context. */
async function openPage(context: { newPage(): Promise<Page> }, path = '/'): Promise<Page> {
  const page = await context.newPage();
  await page.goto(site.url + path);
  return page;
}

async function openFrame(browser: Browser, path: string): Promise<Frame> {
  const page = await openPage(await browser.newContext(), path);
  const frame = page.frames()[1]!;
  await frame.waitForSelector('#ask');
  return frame;
}

/** The place of an element in its page, in CSS pixels, with the width of the page. */
async function placeOf(page: Page | Frame, selector: string): Promise<[{ x: number; y: number }, number]> {
  const { x, y, width, height } = (await page.locator(selector).boundingBox())!;
  const top = 'mainFrame' in page ? page : page.page();
  return [{ x: x + width / 2, y: y + height / 2 }, await top.evaluate(() => innerWidth)];
}

async function placesIn(page: Page | Frame) {
  const places = ['#name', '#role', '#file', '#ask'].map((selector) => placeOf(page, selector));
  const [name, role, file, ask] = await Promise.all(places);
  return { name: name!, role: role!, file: file!, ask: ask! };
}

/** Fills the form in the tab that is shown, and answers its dialog. */
async function fillForm(view: Page, places: Awaited<ReturnType<typeof placesIn>>): Promise<void> {
  await clickAt(view, ...places.name);
  await view.keyboard.type('Ada');
  await clickAt(view, ...places.role);
  await view.getByLabel('Options of the list in the page').selectOption('Admin');
  await clickAt(view, ...places.file);
  const chosen = { name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('first') };
  await view.getByLabel('Files for the page').setInputFiles([chosen]);
  await view.getByLabel('Files for the page').waitFor({ state: 'hidden' });
  await clickAt(view, ...places.ask);
  await view.getByText('Your code?').waitFor();
  await view.getByLabel('Answer').fill('1234');
  await view.getByRole('button', { name: 'OK' }).click();
  await view.getByText('Your code?').waitFor({ state: 'hidden' });
}

const FILLED = ['Ada', 'Admin', 'a.txt', '1234'];

function valuesIn(page: Page | Frame): Promise<unknown> {
  return page.evaluate(() => {
    const [name, , file] = document.querySelectorAll('input');
    const role = document.querySelector('select')!.value;
    return [name!.value, role, file!.files?.[0]?.name, document.querySelector('#ask')!.textContent];
  });
}

it.each<[string, (browser: Browser) => Promise<Page | Frame>]>([
  ['in a further context', async (browser) => openPage(await browser.newContext())],
  ['as large as its window', async (browser) => openPage(await browser.newContext({ viewport: null }))],
  [
    'that was opened first and navigated last',
    async (browser) => {
      const context = await browser.newContext();
      const page = await openPage(context);
      await openPage(context);
      await page.reload();
      return page;
    },
  ],
  ['with a frame of another site', (browser) => openFrame(browser, '/other-site')],
  ['with a frame of another origin of its site', (browser) => openFrame(browser, '/other-origin')],
])('a person uses the newest of many pages: one %s', async (_name, openNewest) => {
  const { value } = await playwright.withPooledBrowser(
    used.pool,
    async ({ browser, handoff }) => {
      for (const context of [await browser.newContext(), await browser.newContext()])
        for (const path of ['/1', '/2', '/3']) await openPage(context, path);
      const newest = await openNewest(browser);
      const places = await placesIn(newest);
      const asked = handoff({ message: 'Log in.' });
      const view = await open();
      await control(view);
      await fillForm(view, places);
      await answer(view, 'Done');
      await asked;
      return valuesIn(newest);
    },
    { onEvent },
  );
  expect(value).toEqual(FILLED);
});

/** The tab that has been opened last is shown. */
const newestIsShown = (view: Page) =>
  view.getByRole('tab', { selected: true }).and(view.getByRole('tab').last()).waitFor();

it('a person uses a page of a context that another client opens meanwhile, and then the page before', async () => {
  const { value } = await playwright.withPooledBrowser(
    used.pool,
    async ({ page, session, handoff }) => {
      await page.goto(site.url);
      await page.evaluate(`document.title = 'First'`);
      const places = await placesIn(page);
      const asked = handoff({ message: 'Log in.' });
      const view = await open();
      await control(view);
      const client = await chromium.connectOverCDP(session.cdp_ws_url);
      const cdp = await client.newBrowserCDPSession();
      const { browserContextId } = await cdp.send('Target.createBrowserContext');
      await cdp.send('Target.createTarget', { url: site.url, browserContextId });
      const pages = () => client.contexts().flatMap((context) => context.pages());
      await expect.poll(() => pages().length).toBe(2);
      // The client would dismiss their dialogs.
      for (const one of pages()) one.on('dialog', () => {});
      const second = pages()[1]!;
      await second.waitForSelector('#ask');
      await view.getByRole('tab').nth(1).waitFor();
      await newestIsShown(view);
      await fillForm(view, await placesIn(second));
      const values = await valuesIn(second);
      await cdp.send('Target.disposeBrowserContext', { browserContextId });
      await view.getByRole('tab', { name: 'First', selected: true }).waitFor();
      await fillForm(view, places);
      await answer(view, 'Done');
      await asked;
      await client.close();
      return [values, await valuesIn(page)];
    },
    { onEvent },
  );
  expect(value).toEqual([FILLED, FILLED]);
});

it('a person uses the popup of a page, and then the page again', async () => {
  const { value } = await playwright.withPooledBrowser(
    used.pool,
    async ({ browser, handoff }) => {
      const page = await openPage(await browser.newContext());
      await page.evaluate(`document.title = 'First'`);
      const [places, button] = [await placesIn(page), await placeOf(page, '#open')];
      const asked = handoff({ message: 'Log in.' });
      const view = await open();
      await control(view);
      const opening = page.waitForEvent('popup');
      await clickAt(view, ...button);
      await view
        .getByRole('tab', { name: 'Login', selected: true })
        .and(view.getByRole('tab').nth(2))
        .waitFor();
      await fillForm(view, places);
      await view.getByRole('tab', { name: 'First' }).click();
      await view.getByRole('tab', { name: 'First', selected: true }).waitFor();
      await fillForm(view, places);
      await answer(view, 'Done');
      await asked;
      return [await valuesIn(await opening), await valuesIn(page)];
    },
    { onEvent },
  );
  expect(value).toEqual([FILLED, FILLED]);
});
