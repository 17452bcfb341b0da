import { chromium, type Page } from 'playwright-core';
import { expect, it } from 'vitest';
import {
  HandoffTimeoutError,
  isBrowserLostError,
  isHandoffTimeoutError,
  mapPooledBrowsers,
  type RunEvent,
} from '../../../src/index.js';
import * as playwright from '../../../src/playwright.js';
import * as puppeteer from '../../../src/puppeteer.js';
import { useLocalPool } from '../../support/local.js';
import { useSite } from '../../support/site.js';
import { isWaiting, LOGIN, reply, useHandoffs } from './support.js';

const used = useLocalPool();
const site = useSite(({ url }, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end(url === '/' ? LOGIN : `<title>${url}</title>`);
});
const { nextUrl, onEvent } = useHandoffs();
/** Both libraries, by what they have in common. */
const LIBRARIES = [
  ['Playwright', playwright],
  ['Puppeteer', puppeteer as unknown as typeof playwright],
] as const;

it.each(LIBRARIES)(
  '%s: calls wait for the answer, but a press is never without its release',
  async (_name, library) => {
    const run = library.withPooledBrowser(
      used.pool,
      async ({ page, handoff }) => {
        await page.goto(site.url);
        await page.evaluate(`addEventListener('mouseup', () => (document.title += '!'))`);
        const { x, y, width, height } = (await (await page.$('#go'))!.boundingBox())!;
        await page.mouse.move(x + width / 2, y + height / 2);
        await page.mouse.down();
        const asked = handoff({ message: 'Look at the page.' });
        const url = await nextUrl();
        await page.mouse.up();
        const done: string[] = [];
        const calls = [
          page.mouse.down().then(() => done.push('down')),
          page.mouse.up().then(() => done.push('up')),
          page.keyboard.press('a').then(() => done.push('key')),
          page.goto(`${site.url}/next`).then(() => done.push('next')),
        ];
        const waits = await isWaiting(Promise.any(calls));
        await reply(url);
        await asked;
        await Promise.all(calls);
        return { waits, done, title: await page.title() };
      },
      { onEvent },
    );
    const { waits, done, title } = (await run).value;
    expect({ waits, title }).toEqual({ waits: true, title: '/next' });
    expect(done).toHaveLength(4);
    expect(done.indexOf('down')).toBeLessThan(done.indexOf('up'));
  },
);

it.each(LIBRARIES)(
  '%s: a tab that the person opens is a page of the agent, also with routes',
  async (_name, library) => {
    const run = library.withPooledBrowser(
      used.pool,
      async ({ page, session, handoff }) => {
        await page.goto(site.url);
        await routeAll(page);
        const asked = handoff({ message: 'Open the other page.' });
        const url = await nextUrl();
        const person = await chromium.connectOverCDP(session.cdp_ws_url);
        const theirs = person.contexts()[0]!.pages()[0]!;
        const [popup] = await Promise.all([theirs.waitForEvent('popup'), theirs.click('#open')]);
        await popup.waitForLoadState();
        const seen = await popup.title();
        await theirs.goto(`${site.url}/by-person`);
        await person.close();
        await reply(url);
        await asked;
        const pages = await (page.context
          ? page.context().pages()
          : (page as unknown as { browser(): { pages(): Promise<Page[]> } }).browser().pages());
        return { seen, titles: await Promise.all(pages.map((one) => one.title())) };
      },
      { onEvent },
    );
    const { seen, titles } = (await run).value;
    expect(seen).toBe('/popup');
    expect(titles.toSorted()).toEqual(['/by-person routed', '/popup']);
  },
);

/** The page is changed by the agent, while it waits for the person. */
async function routeAll(page: Page): Promise<void> {
  const body = '<title>/by-person routed</title>';
  if ('route' in page)
    return page.route('**/by-person', (route) =>
      route.fulfill({ body, contentType: 'text/html' }),
    ) as Promise<never>;
  const one = page as unknown as puppeteer.PuppeteerHandles['page'];
  await one.setRequestInterception(true);
  one.on('request', (request) => {
    if (request.url().endsWith('/by-person')) void request.respond({ body, contentType: 'text/html' });
    else void request.continue();
  });
}

it.each(LIBRARIES)('%s: a dialog that the person leaves open is the agent’s', async (_name, library) => {
  const run = library.withPooledBrowser(
    used.pool,
    async ({ page, session, handoff }) => {
      await page.goto(site.url);
      const shown: string[] = [];
      page.on('dialog', (dialog) => {
        shown.push(dialog.message());
        void dialog.accept('by the agent');
      });
      const asked = handoff({ message: 'Answer the page.' });
      const url = await nextUrl();
      const person = await chromium.connectOverCDP(session.cdp_ws_url);
      const theirs = person.contexts()[0]!.pages()[0]!;
      theirs.on('dialog', () => {});
      void theirs.evaluate(`document.querySelector('#ask').click()`).catch(() => {});
      await theirs.waitForEvent('dialog');
      const before = [...shown];
      await reply(url);
      await asked;
      await expect.poll(() => shown).toEqual(['Your code?']);
      const text = await page.$eval('#ask', (one) => one.textContent);
      await person.close();
      return { before, text };
    },
    { onEvent },
  );
  expect((await run).value).toEqual({ before: [], text: 'by the agent' });
});

it('lets the timeouts of callbacks and tasks stand still', async () => {
  const wait = async ({
    handoff,
  }: Pick<Parameters<Parameters<typeof playwright.withPooledBrowser>[1]>[0], 'handoff'>) => {
    const asked = handoff({ message: 'Take your time.' });
    const url = await nextUrl();
    await new Promise((resolve) => setTimeout(resolve, 4000));
    await reply(url, { status: 'declined', note: 'No time' });
    return asked;
  };
  const answer = { status: 'declined', note: 'No time' };
  const { value } = await playwright.withPooledBrowser(used.pool, wait, { onEvent, timeout: 3000 });
  expect(value).toEqual(answer);
  const options = { onEvent, taskTimeout: 3000, connector: playwright.playwright(), concurrency: 1 };
  for await (const outcome of mapPooledBrowsers(used.pool, ['input'], wait, options))
    expect(outcome).toMatchObject({ status: 'fulfilled', value: answer });
});

it('rejects with HandoffTimeoutError when nobody answers, and the lease goes on', async () => {
  const { value } = await playwright.withPooledBrowser(
    used.pool,
    async ({ page, handoff }) => {
      const asked = handoff({ message: 'Nobody is here.', timeout: 500 });
      const url = await nextUrl();
      const call = page.goto(site.url);
      const error = await asked.catch((reason: unknown) => reason);
      await call;
      const isOpen = await fetch(url).then(
        () => true,
        () => false,
      );
      return { error, isOpen, title: await page.title() };
    },
    { onEvent },
  );
  expect(value).toEqual({ error: expect.any(HandoffTimeoutError), isOpen: false, title: 'Login' });
  expect(isHandoffTimeoutError(value.error)).toBe(true);
});

it('ends with the reason of the signal, with the browser, and with the lease', async () => {
  const controller = new AbortController();
  const reason = new Error('enough');
  let url = '';
  const aborted = playwright.withPooledBrowser(
    used.pool,
    async ({ handoff }) => {
      void nextUrl().then((next) => {
        url = next;
        controller.abort(reason);
      });
      return handoff({ message: 'Wait.' });
    },
    { onEvent, signal: controller.signal },
  );
  await expect(aborted).rejects.toBe(reason);
  await expect(fetch(url)).rejects.toThrow('fetch failed');
  const held = await playwright.leaseBrowser(used.pool, { onEvent });
  const asked = held.handoff({ message: 'Wait.' });
  const second = held.handoff({ message: 'Wait, too.' });
  await nextUrl();
  await held.release();
  await expect(asked).rejects.toMatchObject({ name: 'LeaseOverError' });
  await expect(second).rejects.toMatchObject({ name: 'LeaseOverError' });
  const lost = playwright.withPooledBrowser(
    used.pool,
    async ({ session, handoff }) => {
      void nextUrl().then(() => used.pool.release(session.session_id));
      const error = await handoff({ message: 'Wait.' }).catch((one: unknown) => one);
      expect(isBrowserLostError(error)).toBe(true);
      throw error;
    },
    { onEvent },
  );
  await expect(lost).rejects.toSatisfy(isBrowserLostError);
});

it('lets a second hand-off of the same lease wait for the first one', async () => {
  const events: RunEvent[] = [];
  const { value } = await playwright.withPooledBrowser(
    used.pool,
    async ({ handoff }) => {
      const both = [handoff({ message: 'First' }), handoff({ message: 'Second' })];
      await reply(await nextUrl(), { status: 'done', note: '1' });
      await reply(await nextUrl(), { status: 'declined', note: '2' });
      return Promise.all(both);
    },
    { onEvent: (event) => (events.push(event), onEvent(event)) },
  );
  expect(value).toEqual([
    { status: 'done', note: '1' },
    { status: 'declined', note: '2' },
  ]);
  expect(events.flatMap((event) => (event.type === 'handoff' ? event.message : []))).toEqual([
    'First',
    'Second',
  ]);
});

it.each([
  undefined,
  {},
  { message: ' ' },
  { message: 'a'.repeat(4001) },
  { message: 'a', timeout: 0 },
  { message: 'a', url: 'b' },
])('refuses %o before a page is opened', async (options) => {
  const run = playwright.withPooledBrowser(used.pool, ({ handoff }) => handoff(options as never), {
    onEvent,
  });
  await expect(run).rejects.toMatchObject({ name: 'InvalidOptionError' });
});
