import { existsSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { Browser, ConnectOptions } from 'puppeteer-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConnectRequest } from '../../src/connect/connector.js';
import { Contexts } from '../../src/connect/contexts.js';
import { playwright } from '../../src/connect/playwright.js';
import { createTemporaryFolder } from '../../src/connect/temporary-folder.js';
import { puppeteer } from '../../src/connect/puppeteer.js';
import type { Socket, SocketEnd } from '../../src/connect/socket.js';
import { InvalidOptionError } from '../../src/index.js';
import { rejection } from '../pool/support.js';
import { PlayedBrowser } from '../support/played-browser.js';

// What a real browser does not do on demand. The other tests of the connectors use real browsers.
let far: PlayedBrowser;
let socket: Socket;
let exitListeners: unknown[];

beforeEach(async () => {
  exitListeners = process.listeners('exit');
  far = await PlayedBrowser.start();
  ({ socket } = await far.connect());
});

afterEach(async () => {
  socket.cut('closed-by-us');
  await socket.ended;
  await far[Symbol.asyncDispose]();
  // The folder of a connection is removed after its socket has ended.
  await expect.poll(() => process.listeners('exit')).toEqual(exitListeners);
});

function request(choices: Partial<ConnectRequest> = {}): ConnectRequest {
  const defaults = {
    protocol: 'cdp',
    context: 'default',
    connectOptions: {},
    timeout: 1000,
    endReason: 'over',
    onOwnContextUsed: () => {},
  } as const;
  const endpoint = async () => 'ws://here/';
  const openClient = async () => socket;
  return {
    socket,
    pageUrl: undefined,
    endpoint,
    openClient,
    sharedEndpoint: endpoint,
    ...defaults,
    ...choices,
  };
}

it.each([
  ['is the reason of the failure', true, 'unknown time zone', InvalidOptionError],
  ['may not be: the browser is gone', true, 'Target page, context or browser has been closed', Error],
  ['may not be: the connection is lost', false, 'unknown time zone', Error],
])('an option of a new context %s', async (_what, isConnected, message, expected) => {
  const library = { check: () => {}, newContext: () => Promise.reject(new Error(message)) };
  const contexts = new Contexts(library as never, {
    browser: {},
    own: {} as never,
    isConnected: () => isConnected,
  });
  const error = await rejection(contexts.open('new', {}));
  expect(error.constructor).toBe(expected);
  expect(error.message).toContain(message);
});

describe('Playwright', () => {
  /** Returns the options of a connect that fails. */
  async function optionsOf(connectOptions: object): Promise<Record<string, unknown>> {
    const calls: [string, object][] = [];
    const connectOverCDP = (url: string, options: object) => {
      calls.push([url, options]);
      return Promise.reject(new Error('no targets'));
    };
    const connector = playwright({ chromium: { connectOverCDP } as never });
    await rejection(connector.connect(request({ connectOptions })));
    expect(calls).toEqual([['ws://here/', expect.anything()]]);
    return calls[0]![1] as Record<string, unknown>;
  }

  it("receives the caller's connectOptions, without the default timeout of Playwright", async () => {
    const { artifactsDir, ...options } = await optionsOf({ slowMo: 7 });
    expect(options).toEqual({ slowMo: 7, timeout: 0 });
    expect(await optionsOf({ timeout: 1 })).toMatchObject({ timeout: 1 });
    expect(dirname(artifactsDir as string)).toBe(tmpdir());
    expect(basename(artifactsDir as string)).toMatch(/^pooled-browser-artifacts-/);
  });

  it('stores its files in a folder that is removed with the connection, also after a failed connect', async () => {
    const artifactsDir = (await optionsOf({}))['artifactsDir'] as string;
    await writeFile(join(artifactsDir, 'download'), 'bytes');
    socket.cut('closed-by-us');
    await expect.poll(() => existsSync(artifactsDir)).toBe(false);
  });

  it('leaves no folder when the process ends first, or when the folder was removed before', async () => {
    for (const isGone of [false, true]) {
      let end!: (how: SocketEnd) => void;
      const ended = new Promise<SocketEnd>((resolve) => (end = resolve));
      const { path, removed } = await createTemporaryFolder({ ended });
      await writeFile(join(path, 'download'), 'bytes');
      if (isGone) rmSync(path, { recursive: true });
      process.listeners('exit').find((listener) => !exitListeners.includes(listener))!(0);
      expect(existsSync(path)).toBe(false);
      end('dropped');
      await removed;
      expect(process.listeners('exit')).toEqual(exitListeners);
    }
  });
});

describe('Puppeteer', () => {
  class Page {
    isGone = false;
    readonly isClosed = () => this.isGone;
    readonly url = () => 'about:blank';
    readonly close = async () => void (this.isGone = true);
  }

  class Context {
    readonly all: object[] = [];
    readonly targets = () => [...this.all];
    readonly newPage = async () => this.add().handle;
    readonly on = () => this;

    /** @param onPage Called when the connector requests the page. */
    add(type = 'page', onPage?: () => Page | null) {
      const handle = new Page();
      const page = async () => (onPage ? onPage() : handle);
      const target = { handle, type: () => type, url: handle.url, browserContext: () => this, page };
      this.all.push(target);
      return target;
    }
  }

  /** Connects to a browser with this context. `onWait` is called when the connector waits for a page. */
  async function connect(own: Context, onWait: (isPage: (target: object) => boolean) => void = () => {}) {
    const browser = {
      defaultBrowserContext: () => own,
      browserContexts: () => [own],
      waitForTarget: async (isPage: (target: object) => boolean) => onWait(isPage),
    };
    const connector = puppeteer({ puppeteer: { connect: async () => browser as unknown as Browser } });
    const { handles, cleanup } = await connector.connect(request());
    return { page: handles.page as unknown as Page, cleanup };
  }

  it.each([
    ['cdp', 'cdp'],
    ['bidi', 'webDriverBiDi'],
  ] as const)(
    'receives connectOptions over %s, except those that would bypass our socket',
    async (ours, theirs) => {
      const calls: ConnectOptions[] = [];
      const library = {
        connect: (options: ConnectOptions) => {
          calls.push(options);
          return Promise.reject(new Error('no targets'));
        },
      };
      const connector = puppeteer({ puppeteer: library });
      await rejection(connector.connect(request({ protocol: ours })));
      const connectOptions = { slowMo: 3, defaultViewport: { width: 1 }, protocol: 'x', transport: 'y' };
      await rejection(connector.connect(request({ protocol: ours, connectOptions })));
      expect(calls).toMatchObject([
        { defaultViewport: null, protocol: theirs },
        { slowMo: 3, defaultViewport: { width: 1 }, protocol: theirs },
      ]);
      calls[1]!.transport!.send('{"id":1}');
      await expect.poll(() => far.received).toEqual(['{"id":1}']);
    },
  );

  it('uses a page that it detects late, which stays open', async () => {
    const own = new Context();
    own.add('worker');
    let isPage!: (target: object) => boolean;
    const { page, cleanup } = await connect(own, (predicate) => {
      isPage = predicate;
      own.add();
    });
    const [worker, late] = own.all as ReturnType<Context['add']>[];
    expect(page).toBe(late!.handle);
    await cleanup();
    expect(page.isGone).toBe(false);
    expect(own.all).toHaveLength(2);
    expect([late!, worker!, new Context().add()].map(isPage)).toEqual([true, false, false]);
  });

  it('uses a new page if no page appears, or no page is usable', async () => {
    const empty = new Context();
    expect((await connect(empty)).page).toBe((empty.all[0] as ReturnType<Context['add']>).handle);
    // One page fails during its setup, and one closes during its setup.
    const own = new Context();
    own.add('page', () => null);
    const closing = own.add('page', () => {
      own.all.splice(own.all.indexOf(closing), 1);
      return closing.handle;
    });
    const last = own.add();
    expect((await connect(own)).page).toBe(last.handle);
  });
});
