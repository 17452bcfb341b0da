import { existsSync } from 'node:fs';
import type { Browser, BrowserType } from 'playwright-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConnectRequest } from '../../src/connect/connector.js';
import { openSingleEndpoint } from '../../src/connect/loopback-endpoint.js';
import { playwright } from '../../src/connect/playwright.js';
import type { Socket } from '../../src/connect/socket.js';
import { PlayedBrowser } from '../support/played-browser.js';

let far: PlayedBrowser;
let socket: Socket;

beforeEach(async () => {
  far = await PlayedBrowser.start();
  ({ socket } = await far.connect());
});

afterEach(async () => {
  socket.cut('closed-by-us');
  await socket.ended;
  await far[Symbol.asyncDispose]();
});

/** The part of Playwright that the connector uses, in memory. */
class Page {
  isGone = false;
  /** The outcomes of the next evaluations. */
  answers: (() => Promise<unknown>)[] = [];
  asked = 0;
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  isClosed(): boolean {
    return this.isGone;
  }

  url(): string {
    return 'about:blank';
  }

  async evaluate(): Promise<unknown> {
    this.asked++;
    return this.answers.shift()?.() ?? 0;
  }

  async close(): Promise<void> {
    this.isGone = true;
    this.#context.open.delete(this);
  }
}

class Context {
  readonly open = new Set<Page>();
  readonly options: unknown;
  isClosed = false;

  constructor(options?: unknown) {
    this.options = options;
  }

  pages(): Page[] {
    return [...this.open];
  }

  async newPage(): Promise<Page> {
    const page = new Page(this);
    this.open.add(page);
    return page;
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

class PlayedPlaywright {
  readonly own = new Context();
  readonly others: Context[] = [];
  isClosed = false;
  calls: [url: string, options: Record<string, unknown>][] = [];
  fails = false;

  /** The caller's own copy of the library. */
  get chromium(): Pick<BrowserType, 'connectOverCDP'> {
    const browser = {
      contexts: () => [this.own, ...this.others],
      newContext: async (options: unknown) => {
        const context = new Context(options);
        this.others.push(context);
        return context;
      },
      isConnected: () => !this.isClosed,
      close: async () => {
        this.isClosed = true;
      },
    };
    const connectOverCDP = async (url: string, options: Record<string, unknown>) => {
      this.calls.push([url, options]);
      if (this.fails) throw new Error('no targets');
      return browser as unknown as Browser;
    };
    return { connectOverCDP } as unknown as Pick<BrowserType, 'connectOverCDP'>;
  }

  async connect(request: Partial<ConnectRequest> = {}) {
    const connection = await playwright({ chromium: this.chromium }).connect({
      socket,
      protocol: 'cdp',
      context: 'default',
      connectOptions: {},
      pageUrl: undefined,
      timeout: 4321,
      endpoint: async () => (await openSingleEndpoint(socket)).url,
      ...request,
    });
    return { ...connection, handles: connection.handles as unknown as { context: Context; page: Page } };
  }
}

const artifactsDir = (played: PlayedPlaywright) => played.calls[0]![1]['artifactsDir'] as string;

describe('the connector of Playwright', () => {
  it('explains why it does not support BiDi', () => {
    const connector = playwright();
    expect(connector.library).toBe('playwright');
    expect(connector.refusal('cdp')).toBeUndefined();
    expect(connector.refusal('bidi')).toMatch(/no public API.*pooled-browser\/puppeteer/);
  });

  it('loads playwright-core, unless the caller passes another copy', async () => {
    const { chromium } = await import('playwright-core');
    expect(await playwright().load()).toBe(chromium);
    const own = new PlayedPlaywright().chromium;
    expect(await playwright({ chromium: own }).load()).toBe(own);
  });

  it("connects over a loopback endpoint with the caller's connectOptions and without Playwright's timeout", async () => {
    const played = new PlayedPlaywright();
    await played.connect({ connectOptions: { slowMo: 7, timeout: 1 } });
    const [[url, options]] = played.calls as [[string, object]];
    expect(url).toMatch(/^ws:\/\/127\.0\.0\.1:/);
    expect(options).toEqual({ slowMo: 7, timeout: 1, artifactsDir: artifactsDir(played) });
    const plain = new PlayedPlaywright();
    await plain.connect();
    expect(plain.calls[0]![1]).toMatchObject({ timeout: 0 });
  });

  it('stores its files in a folder that is removed with the connection, also after a failed connect', async () => {
    for (const fails of [false, true]) {
      const played = new PlayedPlaywright();
      played.fails = fails;
      await played.connect().catch(() => {});
      expect(existsSync(artifactsDir(played))).toBe(true);
      socket.cut('closed-by-us');
      await socket.ended;
      await expect.poll(() => existsSync(artifactsDir(played))).toBe(false);
      ({ socket } = await far.connect());
    }
  });
});

describe('the page of the callback', () => {
  it("is the first page of the browser's own context", async () => {
    const played = new PlayedPlaywright();
    const page = await played.own.newPage();
    await played.own.newPage();
    const { handles, isConnected } = await played.connect();
    expect(handles.context).toBe(played.own);
    expect(handles.page).toBe(page);
    expect(played.own.pages()).toHaveLength(2);
    expect(isConnected()).toBe(true);
    played.isClosed = true;
    expect(isConnected()).toBe(false);
  });

  it('is a new page if there is none', async () => {
    const played = new PlayedPlaywright();
    const { handles } = await played.connect();
    expect(played.own.pages()).toEqual([handles.page]);
  });

  it('is a page as large as the window in a new context, with context: new', async () => {
    const played = new PlayedPlaywright();
    await played.own.newPage();
    const { handles } = await played.connect({ context: 'new' });
    expect(played.others).toEqual([handles.context]);
    expect(handles.context.options).toEqual({ viewport: null });
    expect(handles.context.pages()).toEqual([handles.page]);
    expect(played.own.pages()).toHaveLength(1);
  });
});

describe('the cleanup', () => {
  it('closes the pages and contexts that the lease opened, and no others', async () => {
    const played = new PlayedPlaywright();
    const first = await played.own.newPage();
    const { cleanup, handles } = await played.connect({ context: 'new' });
    await handles.context.newPage();
    const popUp = await played.own.newPage();
    await cleanup();
    expect(played.own.pages()).toEqual([first]);
    expect(popUp.isGone).toBe(true);
    expect(played.others[0]!.isClosed).toBe(true);
    expect(played.own.isClosed).toBe(false);
  });

  it('opens a page if the callback closed the last one', async () => {
    const played = new PlayedPlaywright();
    const page = await played.own.newPage();
    const { cleanup } = await played.connect();
    await page.close();
    const popUp = await played.own.newPage();
    await cleanup();
    expect(played.own.pages()).toHaveLength(1);
    expect(played.own.pages()).not.toContain(popUp);
  });

  it('checks that the remaining pages respond, and only those', async () => {
    const played = new PlayedPlaywright();
    const page = await played.own.newPage();
    const { cleanup } = await played.connect();
    const opened = await played.own.newPage();
    await cleanup();
    expect([page.asked, opened.asked]).toEqual([1, 0]);
    expect(played.own.pages()).toEqual([page]);
  });

  const fail = () => Promise.reject(new Error('navigated'));

  it('tolerates one evaluation that a navigation interrupts, but not two', async () => {
    const played = new PlayedPlaywright();
    const page = await played.own.newPage();
    const { cleanup } = await played.connect();
    page.answers = [fail];
    await cleanup();
    page.answers = [fail, fail];
    await expect(cleanup()).rejects.toThrow('navigated');
  });

  it('ignores a page that closes during the check', async () => {
    const played = new PlayedPlaywright();
    const page = await played.own.newPage();
    const { cleanup } = await played.connect();
    page.answers = [
      () => {
        page.isGone = true;
        return fail();
      },
      fail,
    ];
    await cleanup();
    expect(page.asked).toBe(1);
  });
});

it('closes the socket with the closing handshake on disconnect, and leaves nothing of Playwright', async () => {
  const played = new PlayedPlaywright();
  const { disconnect } = await played.connect();
  await disconnect();
  expect(await socket.ended).toBe('closed-by-us');
  expect(played.isClosed).toBe(true);
  expect(existsSync(artifactsDir(played))).toBe(false);
});
