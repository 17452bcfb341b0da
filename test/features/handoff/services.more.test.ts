import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BrowserPool } from '../../../src/index.js';
import * as playwright from '../../../src/playwright.js';
import * as puppeteer from '../../../src/puppeteer.js';
import { cdp, kernel } from '../../../src/services.js';
import { faults, violations } from '../../local/pages/support.js';
import { startApi, type Api } from '../../local/support.js';
import { startChromium, type Chromium } from '../../support/chromium.js';
import { contractOf, ContractServer } from '../../support/contract-server.js';
import { TOKEN } from '../../support/fake-service.js';
import { describeWithFirefox } from '../../support/firefox.js';
import { titled, useLocalPool } from '../../support/local.js';
import { answer, control, isWaiting, useHandoffs } from './support.js';

const { open, onEvent } = useHandoffs();
const LINK = 'Open the browser';

describe('a browser that is reached over CDP', () => {
  let browser: Chromium;
  beforeAll(async () => void (browser = await startChromium()));
  afterAll(() => browser?.[Symbol.asyncDispose]());

  /** Asks a person, who types into the page, and expects the answer. */
  async function expectUse(pool: BrowserPool): Promise<void> {
    const { value } = await playwright.withPooledBrowser(
      pool,
      async ({ page, handoff }) => {
        await page.goto('data:text/html,<title>At the service</title><input id=name autofocus>');
        const asked = handoff({ message: 'Type.' });
        const view = await open();
        await view.getByRole('tab', { name: 'At the service' }).waitFor();
        await control(view);
        await view.keyboard.type('Ada');
        // The page shows the browser itself, so it needs no link to another one.
        expect(await view.getByRole('link', { name: LINK }).isVisible()).toBe(false);
        await answer(view, 'Done', 'typed');
        return { answer: await asked, text: await page.inputValue('#name') };
      },
      { onEvent },
    );
    expect(value).toEqual({ answer: { status: 'done', note: 'typed' }, text: 'Ada' });
  }

  it('is shown over the connection of the lease, without a service', async () => {
    await using pool = new BrowserPool('mine', { service: cdp(browser.url) as never });
    await expectUse(pool);
  });

  it.each(['anchor', 'browser-use', 'hyperbrowser', 'steel'])(
    'is shown over the connection of the lease at %s, which has a live view of its own',
    async (name) => {
      const contract = contractOf(name);
      await using server = await ContractServer.start(contract);
      server.browserUrl = browser.url;
      const { baseUrl } = server;
      const service = contract.service as never;
      await using pool = new BrowserPool('mine', { service, baseUrl, token: TOKEN });
      await expectUse(pool);
      expect(server.active).toEqual([]);
    },
  );
});

/** Asks a person over WebDriver BiDi alone, and returns what the page shows and what the program receives. */
async function askOverBidi(pool: BrowserPool, onView: (view: Page) => Promise<void>) {
  const { value } = await puppeteer.withPooledBrowser(
    pool,
    async ({ page, handoff }) => {
      await page.goto(titled('Before'));
      const asked = handoff({ message: 'Look at <i>it</i>.' });
      const view = await open({ viewport: { width: 360, height: 740 } });
      await view.getByText('Look at <i>it</i>.').waitFor();
      await view.getByText('This page cannot show the browser.').waitFor();
      const call = page.goto(titled('After'));
      const waits = await isWaiting(call);
      expect([await violations(view), faults(view)]).toEqual([[], []]);
      await onView(view);
      await answer(view, 'Cannot be done', 'no view');
      const result = await asked;
      await call;
      return { result, waits, title: await page.title() };
    },
    { onEvent, protocol: 'bidi' },
  );
  expect(value).toEqual({
    result: { status: 'declined', note: 'no view' },
    waits: true,
    title: 'After',
  });
}

describe('a browser that is reached over WebDriver BiDi alone', () => {
  const used = useLocalPool();

  it.each([
    ['https://live.example.com/?at=<b>', 'https://live.example.com/?at=%3Cb%3E'],
    ['http://127.0.0.1:1/live', 'http://127.0.0.1:1/live'],
    ['http://live.example.com/', undefined],
    ['https://user:password@live.example.com/', undefined],
    ['javascript:alert(1)', undefined],
    ['file:///etc/passwd', undefined],
    ['no URL', undefined],
  ])('has the live view %s of its service as the link %s', async (liveViewUrl, expected) => {
    const grant: typeof kernel.grant = (...from) => ({
      ...kernel.grant(...from),
      cdpUrl: undefined,
      liveViewUrl,
    });
    const { baseUrl, token, pools } = used.local;
    await using pool = new BrowserPool(pools[0]!, { service: { ...kernel, grant }, baseUrl, token });
    await askOverBidi(pool, async (view) => {
      const link = view.getByRole('link', { name: LINK, includeHidden: true });
      expect([await link.isVisible(), (await link.getAttribute('href')) || undefined]).toEqual([
        expected !== undefined,
        expected,
      ]);
      expect(await link.getAttribute('rel')).toBe('noreferrer');
    });
  });
});

describeWithFirefox('Firefox', () => {
  let firefox: Api;
  let pool: BrowserPool;
  beforeAll(async () => {
    firefox = await startApi({ browser: 'firefox' });
    const { baseUrl, token } = firefox.pool;
    pool = new BrowserPool('default', { baseUrl, token });
  });
  afterAll(() => pool?.close());

  it('asks a person, who answers without a view of the browser', async () => {
    await askOverBidi(pool, async (view) =>
      expect(await view.getByRole('link', { name: LINK }).isVisible()).toBe(false),
    );
  });
});
