import type { Browser, ConnectOptions } from 'puppeteer-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConnectRequest } from '../../src/connect/connector.js';
import { puppeteer } from '../../src/connect/puppeteer.js';
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

/** The part of Puppeteer that the connector uses, in memory. */
class Page {
  isGone = false;
  /** The outcomes of the next evaluations. */
  answers: (() => Promise<unknown>)[] = [];
  asked = 0;
  readonly #close: () => void;

  constructor(close: () => void) {
    this.#close = close;
  }

  isClosed(): boolean {
    return this.isGone;
  }

  async evaluate(): Promise<unknown> {
    this.asked++;
    return this.answers.shift()?.() ?? 0;
  }

  async close(): Promise<void> {
    this.isGone = true;
    this.#close();
  }
}

class Target {
  readonly #type: string;
  readonly #context: Context;
  readonly handle: Page;
  /** Called when the connector requests the page. */
  onPage: () => Page | null;

  constructor(type: string, context: Context) {
    this.#type = type;
    this.#context = context;
    this.handle = new Page(() => context.all.delete(this));
    this.onPage = () => this.handle;
  }

  url(): string {
    return 'about:blank';
  }

  type(): string {
    return this.#type;
  }

  browserContext(): Context {
    return this.#context;
  }

  async page(): Promise<Page | null> {
    return this.onPage();
  }
}

class Context {
  readonly all = new Set<Target>();
  isClosed = false;

  targets(): Target[] {
    return [...this.all];
  }

  add(type = 'page'): Target {
    const target = new Target(type, this);
    this.all.add(target);
    return target;
  }

  async newPage(): Promise<Page> {
    return this.add().handle;
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

class PlayedPuppeteer {
  readonly own = new Context();
  readonly others: Context[] = [];
  isConnected = true;
  disconnects = 0;
  options: ConnectOptions | undefined;
  /** The calls of `waitForTarget`. */
  waits: { predicate: (target: Target) => boolean; options: unknown }[] = [];
  onWait: () => Promise<void> = () => Promise.reject(new Error('none came'));

  readonly library = {
    connect: async (options: ConnectOptions): Promise<Browser> => {
      this.options = options;
      const isConnected = () => this.isConnected;
      return {
        defaultBrowserContext: () => this.own,
        browserContexts: () => [this.own, ...this.others],
        createBrowserContext: async () => {
          const context = new Context();
          this.others.push(context);
          return context;
        },
        waitForTarget: (predicate: (target: Target) => boolean, options: unknown) => {
          this.waits.push({ predicate, options });
          return this.onWait();
        },
        get connected() {
          return isConnected();
        },
        disconnect: async () => {
          this.disconnects++;
        },
      } as unknown as Browser;
    },
  };

  async connect(request: Partial<ConnectRequest> = {}) {
    const connector = puppeteer({ puppeteer: this.library });
    const endpoint = async () => '';
    const choices = {
      protocol: 'cdp',
      context: 'default',
      connectOptions: {},
      timeout: 1000,
      pageUrl: undefined,
      endpoint,
    } as const;
    const connection = await connector.connect({ socket, ...choices, ...request });
    return { ...connection, handles: connection.handles as unknown as { context?: Context; page: Page } };
  }
}

describe('the connector of Puppeteer', () => {
  it('supports both protocols', () => {
    const connector = puppeteer();
    expect(connector.library).toBe('puppeteer');
    expect([connector.refusal('cdp'), connector.refusal('bidi')]).toEqual([undefined, undefined]);
  });

  it('loads puppeteer-core, unless the caller passes another copy', async () => {
    expect(await puppeteer().load()).toBe(await import('puppeteer-core'));
    const { library } = new PlayedPuppeteer();
    expect(await puppeteer({ puppeteer: library }).load()).toBe(library);
  });

  it.each([
    ['cdp', 'cdp'],
    ['bidi', 'webDriverBiDi'],
  ] as const)(
    'connects over our socket, with %s as %s, and does not resize the browser',
    async (ours, theirs) => {
      const played = new PlayedPuppeteer();
      await played.connect({ protocol: ours });
      expect(played.options).toMatchObject({ defaultViewport: null, protocol: theirs });
      played.options!.transport!.send('{"id":1}');
      await expect.poll(() => far.received).toEqual(['{"id":1}']);
    },
  );

  it('passes connectOptions to Puppeteer, except those that would bypass our socket', async () => {
    const played = new PlayedPuppeteer();
    const connectOptions = {
      slowMo: 3,
      defaultViewport: { width: 1, height: 1 },
      protocol: 'x',
      transport: 'y',
    };
    await played.connect({ connectOptions });
    expect(played.options).toMatchObject({
      slowMo: 3,
      defaultViewport: { width: 1, height: 1 },
      protocol: 'cdp',
      transport: { send: expect.any(Function) },
    });
  });
});

describe('the page of the callback', () => {
  it("is the first page of the browser's own context, without a context", async () => {
    const played = new PlayedPuppeteer();
    played.own.add('service_worker');
    const first = played.own.add();
    played.own.add();
    const { handles, isConnected } = await played.connect();
    expect(handles.page).toBe(first.handle);
    expect(handles).not.toHaveProperty('context');
    expect(isConnected()).toBe(true);
    played.isConnected = false;
    expect(isConnected()).toBe(false);
    expect(played.waits).toEqual([]);
  });

  it('is a page in a new context, together with the context, with context: new', async () => {
    const played = new PlayedPuppeteer();
    played.own.add();
    const { handles } = await played.connect({ context: 'new' });
    expect(played.others).toEqual([handles.context]);
    expect(handles.context!.targets().map(({ handle }) => handle)).toEqual([handles.page]);
  });

  it('is a page that Puppeteer detects late', async () => {
    const played = new PlayedPuppeteer();
    played.onWait = async () => void played.own.add();
    const { handles, cleanup } = await played.connect();
    const [target] = played.own.targets();
    expect(handles.page).toBe(target!.handle);
    expect(played.own.targets()).toHaveLength(1);
    // The page existed before the lease, so it stays open.
    await cleanup();
    expect(played.own.targets()).toEqual([target]);
    const [{ predicate, options }] = played.waits as [(typeof played.waits)[0]];
    expect(options).toMatchObject({ timeout: expect.any(Number) });
    expect(predicate(target!)).toBe(true);
    expect(predicate(played.own.add('worker'))).toBe(false);
    expect(predicate(new Context().add())).toBe(false);
  });

  it('is a new page if none appears, or none is usable', async () => {
    const empty = new PlayedPuppeteer();
    const { handles } = await empty.connect();
    expect(empty.own.targets().map(({ handle }) => handle)).toEqual([handles.page]);
    const played = new PlayedPuppeteer();
    // One page fails during its setup, and one closes during its setup.
    played.own.add().onPage = () => null;
    const closing = played.own.add();
    closing.onPage = () => {
      played.own.all.delete(closing);
      return closing.handle;
    };
    const last = played.own.add();
    expect((await played.connect()).handles.page).toBe(last.handle);
  });
});

describe('the cleanup', () => {
  it('closes the pages and contexts that the lease opened, and no others', async () => {
    const played = new PlayedPuppeteer();
    const before = new Context();
    played.others.push(before);
    const first = played.own.add();
    const { cleanup } = await played.connect({ context: 'new' });
    const popUp = played.own.add();
    const worker = played.own.add('worker');
    await cleanup();
    expect(played.own.targets()).toEqual([first, worker]);
    expect(popUp.handle.isGone).toBe(true);
    expect(played.others.map(({ isClosed }) => isClosed)).toEqual([false, true]);
    expect(played.own.isClosed).toBe(false);
    expect(popUp.handle.asked).toBe(0);
    expect(first.handle.asked).toBe(1);
  });

  it('opens a page if the callback closed the last one', async () => {
    const played = new PlayedPuppeteer();
    const first = played.own.add();
    const { cleanup } = await played.connect();
    await first.handle.close();
    const popUp = played.own.add();
    await cleanup();
    expect(played.own.targets()).toHaveLength(1);
    expect(played.own.targets()).not.toContain(popUp);
  });

  const fail = () => Promise.reject(new Error('navigated'));

  it('tolerates one evaluation that a navigation interrupts, but not two', async () => {
    const played = new PlayedPuppeteer();
    const { handle } = played.own.add();
    const { cleanup } = await played.connect();
    handle.answers = [fail];
    await cleanup();
    handle.answers = [fail, fail];
    await expect(cleanup()).rejects.toThrow('navigated');
  });

  it('ignores pages that close during the cleanup', async () => {
    const played = new PlayedPuppeteer();
    const first = played.own.add();
    const { cleanup } = await played.connect();
    first.handle.answers = [
      () => {
        first.handle.isGone = true;
        return fail();
      },
      fail,
    ];
    played.own.add().onPage = () => null;
    await cleanup();
    expect(first.handle.asked).toBe(1);
    first.onPage = () => null;
    await cleanup();
    expect(first.handle.asked).toBe(1);
  });
});

it("closes the socket with the closing handshake on disconnect, and Puppeteer's connection", async () => {
  const played = new PlayedPuppeteer();
  played.own.add();
  const { disconnect } = await played.connect();
  await disconnect();
  expect(await socket.ended).toBe('closed-by-us');
  expect(played.disconnects).toBe(1);
});
