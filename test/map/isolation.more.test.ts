import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BrowserContext as PlaywrightContext, Page as PlaywrightPage } from 'playwright-core';
import type { BrowserContext as PuppeteerContext, Page as PuppeteerPage } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  InvalidOptionError,
  type BrowserPool,
  type Isolation,
  type MapOptions,
  type Outcomes,
} from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { useLocalPool } from '../support/local.js';
import { kill, processesOf } from '../support/processes.js';
import { collect, valuesOf } from './support.js';

/** The part of the pages and contexts of both libraries that these tests use. */
interface AnyTask {
  page: {
    goto(url: string): Promise<unknown>;
    evaluate<Value>(script: string): Promise<Value>;
    title(): Promise<string>;
    click(selector: string): Promise<void>;
    close(): Promise<void>;
  };
  context: object;
}

type Step = (task: AnyTask) => Promise<unknown>;

interface Driver {
  name: string;
  map(pool: BrowserPool, steps: Step[], isolation: Isolation, options?: MapOptions): Outcomes<Step, unknown>;
  allowLocation(task: AnyTask, origin: string): Promise<unknown>;
  pages(task: AnyTask): number | Promise<number>;
  /** Collects the download events of the automation library. */
  listen(task: AnyTask): Promise<string[]>;
}

const run = ({ input, ...task }: AnyTask & { input: Step }) => input(task);
const ONE_PAGE = { concurrency: 1, ordered: true, taskTimeout: 240_000 } as const;

const PLAYWRIGHT: Driver = {
  name: 'Playwright over CDP',
  map: (pool, steps, isolation, options) =>
    playwright.mapPooledBrowsers(pool, steps, run, { ...ONE_PAGE, ...(options as object), isolation }),
  allowLocation: ({ context }, origin) =>
    (context as PlaywrightContext).grantPermissions(['geolocation'], { origin }),
  pages: ({ context }) => (context as PlaywrightContext).pages().length,
  listen: async ({ page }) => {
    const seen: string[] = [];
    (page as PlaywrightPage).on('download', (download) => void seen.push(download.url()));
    return seen;
  },
};
const PUPPETEER: Driver = {
  name: 'Puppeteer over CDP',
  map: (pool, steps, isolation, options) =>
    puppeteer.mapPooledBrowsers(pool, steps, run as never, { ...ONE_PAGE, ...options, isolation }),
  allowLocation: ({ context }, origin) =>
    (context as PuppeteerContext).setPermission(origin, {
      permission: { name: 'geolocation' },
      state: 'granted',
    }),
  pages: async ({ context }) => (await (context as PuppeteerContext).pages()).length,
  // Puppeteer has no API for downloads, and the browser refuses downloads by default.
  listen: async ({ page, context }) => {
    const seen: string[] = [];
    const cdp = await (page as PuppeteerPage).createCDPSession();
    cdp.on('Browser.downloadWillBegin', ({ url }) => void seen.push(url));
    cdp.on('Browser.downloadProgress', ({ state }) => void seen.push(state));
    const { id } = context as PuppeteerContext;
    await cdp.send('Browser.setDownloadBehavior', {
      behavior: 'allow',
      downloadPath: process.env['TMPDIR']!,
      eventsEnabled: true,
      ...(id !== undefined && { browserContextId: id }),
    });
    return seen;
  },
};

/** Stores data in every way that a site can. */
const LEAVE = `(async () => {
  document.cookie = 'left=1';
  localStorage.left = '1';
  sessionStorage.left = '1';
  window.name = 'left';
  history.pushState({}, '', '#left');
  await (await caches.open('left')).put('/left', new Response('left'));
  await new Promise((resolve, reject) => {
    const opening = indexedDB.open('left');
    opening.onsuccess = () => resolve(opening.result.close());
    opening.onerror = reject;
  });
  await navigator.serviceWorker.register('/worker.js');
  await navigator.serviceWorker.ready;
})()`;

interface Seen {
  history: number;
}

const LOOK = `(async () => ({
  cookie: document.cookie,
  localStorage: localStorage.left,
  sessionStorage: sessionStorage.left,
  name: window.name,
  history: history.length,
  caches: await caches.keys(),
  databases: (await indexedDB.databases()).map(({ name }) => name),
  workers: (await navigator.serviceWorker.getRegistrations()).length,
  location: (await navigator.permissions.query({ name: 'geolocation' })).state,
}))()`;

const NOTHING = { cookie: '', caches: [], databases: [], workers: 0 };
const LEFT = {
  cookie: 'left=1',
  localStorage: '1',
  sessionStorage: '1',
  name: 'left',
  caches: ['left'],
  databases: ['left'],
  workers: 1,
  location: 'granted',
};

/** A worker that counts its pages, and does not end while it has one. */
const COUNTER = `let pages = 0;
onconnect = ({ ports: [port] }) => port.postMessage(++pages);
setInterval(() => new BroadcastChannel('left').postMessage('worker'), 50);`;

const COUNT = `new Promise((resolve) => {
  new SharedWorker('/counter.js').port.onmessage = ({ data }) => resolve(data);
})`;

/** Returns what is received on the channel within half a second. */
const LISTEN = `new Promise((resolve) => {
  const received = [];
  new BroadcastChannel('left').onmessage = ({ data }) => received.push(data);
  setTimeout(resolve, 500, received);
})`;

/** The responses to downloads whose files are never complete. */
const downloads = new Set<ServerResponse>();
function beginFile(response: ServerResponse): void {
  const disposition = { 'content-disposition': 'attachment; filename=file.bin' };
  response.writeHead(200, { 'content-type': 'application/octet-stream', ...disposition });
  response.write('x'.repeat(1000));
}

/** Number of requests of each path. */
const requests = new Map<string, number>();
const BODY = '<p>text</p><a id=file href=/file download>file</a><a id=late href=/late download>late</a>';
const server = createServer(({ url = '', headers }, response) => {
  requests.set(url, (requests.get(url) ?? 0) + 1);
  if (url === '/file' || url === '/late') {
    downloads.add(response);
    response.once('close', () => downloads.delete(response));
    return url === '/file' && beginFile(response);
  }
  const script = { 'content-type': 'text/javascript' };
  if (url === '/worker.js') return response.writeHead(200, script).end('');
  if (url === '/counter.js') return response.writeHead(200, script).end(COUNTER);
  if (url === '/cached') return response.writeHead(200, { 'cache-control': 'max-age=600' }).end('cached');
  if (url === '/members/login' && !headers.authorization)
    return response.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end();
  const title = url === '/members/page' && headers.authorization ? 'member' : 'page';
  return response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>${title}</title>${BODY}`);
});
let origin: string;
let other: string;

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  [origin, other] = [`http://127.0.0.1:${port}`, `http://localhost:${port}`];
});
afterEach(() => server.closeAllConnections());
afterAll(() => once(server.close(), 'close'));

const used = useLocalPool();

/** Opens the page of the server, and runs a script in it. */
const evaluate =
  (script: string): Step =>
  async ({ page }) => (await page.goto(origin), page.evaluate(script));
const look = evaluate(LOOK);
const title: Step = async ({ page }) => (await page.goto(origin), page.title());

describe.each([PLAYWRIGHT, PUPPETEER])('$name', ({ map, allowLocation, pages, listen }) => {
  beforeEach(() => requests.clear());

  const results = (isolation: Isolation, ...steps: Step[]): Promise<unknown[]> =>
    valuesOf(map(used.pool, steps, isolation));

  const leave: Step = async (task) => {
    await task.page.goto(origin);
    await allowLocation(task, origin);
    await task.page.evaluate(LEAVE);
  };

  it.each(['context', 'storage'] as const)(
    '%s: a task sees no data that two origins stored in the previous task',
    async (isolation) => {
      const leaveAtBoth: Step = async (task) => {
        await task.page.goto(other);
        await task.page.evaluate(LEAVE);
        await leave(task);
      };
      const lookAtOther: Step = async ({ page }) => (await page.goto(other), page.evaluate(LOOK));
      const [before, , after, afterOther] = await results(isolation, look, leaveAtBoth, look, lookAtOther);
      expect(before).toMatchObject(NOTHING);
      expect(after).toEqual(before);
      expect(afterOther).toEqual({ ...(before as Seen), history: (afterOther as Seen).history });
    },
  );

  it('none: a task sees all data that a site stored in the previous task', async () => {
    const [before, , after] = await results('none', look, leave, look);
    expect(after).toMatchObject(LEFT);
    expect((after as Seen).history).toBeGreaterThan((before as Seen).history);
  });

  it.each([
    ['context', 3],
    ['storage', 1],
    ['none', 1],
  ] as const)('%s: three tasks run in %i page(s)', async (isolation, count) => {
    const page: Step = async (task) => (await evaluate(`localStorage.left = '1'`)(task), task.page);
    expect(new Set(await results(isolation, page, page, page)).size).toBe(count);
  });

  const tick: Step = async ({ page }) => {
    await page.goto(origin);
    requests.set('/tick', 0);
    await page.evaluate(`setInterval(() => fetch('/tick'), 20), 0`);
    await expect.poll(() => requests.get('/tick')).toBeGreaterThan(0);
  };
  /** With 'context', the previous context closes while the next task runs. */
  const expectSilence: Step = async ({ page }) => {
    const ticks = async () => {
      const before = requests.get('/tick')!;
      await page.evaluate('new Promise((resolve) => setTimeout(resolve, 200))');
      return requests.get('/tick')! - before;
    };
    await expect.poll(ticks).toBe(0);
    return 'silence';
  };
  const openPopUp: Step = async (task) => {
    await evaluate(`window.open('${origin}/pop-up'), 0`)(task);
    await expect.poll(() => pages(task)).toBe(2);
  };
  const askBeforeUnload: Step = async ({ page }) => {
    await page.goto(origin);
    await page.click('body');
    await page.evaluate(`addEventListener('beforeunload', (event) => event.preventDefault()), 0`);
  };
  const fetchCached: Step = async (task) => {
    await evaluate(`fetch('/cached').then((response) => response.text())`)(task);
    return requests.get('/cached');
  };
  /** Clicks on a link, and waits until the server has the request. */
  const download =
    (link: 'file' | 'late'): Step =>
    async (task) => {
      const seen = await listen(task);
      await task.page.goto(origin);
      await task.page.click(`#${link}`);
      await expect.poll(() => downloads.size).toBe(1);
      if (link === 'file') await expect.poll(() => seen).toContain(`${origin}/file`);
    };
  const eventsAfterCancel: Step = async (task) => {
    const seen = await listen(task);
    await task.page.goto(origin);
    await expect.poll(() => downloads.size).toBe(0);
    return seen;
  };
  const countLater: Step = async (task) => (await title(task), await sleep(300), downloads.size);
  const eventsAfterLateAnswer: Step = async (task) => {
    const seen = await listen(task);
    await task.page.goto(origin);
    downloads.forEach(beginFile);
    await sleep(500);
    return seen;
  };

  const postMessages: Step = async (task) => {
    await evaluate(COUNT)(task);
    await task.page.evaluate(`setInterval(() => new BroadcastChannel('left').postMessage('page'), 50), 0`);
  };
  const logIn: Step = ({ page }) => page.goto(`${origin.replace('//', '//user:password@')}/members/login`);
  const openMembers: Step = async ({ page }) => (await page.goto(`${origin}/members/page`), page.title());

  const both = (seen: unknown) => ({ context: seen, storage: seen });
  /** What the last of several tasks returns, with each isolation. */
  const CASES: [what: string, steps: Step[], seen: Partial<Record<Isolation, unknown>>][] = [
    [
      'a global of the previous task, whose page did not navigate',
      [({ page }) => page.evaluate('window.left = 1'), ({ page }) => page.evaluate('typeof window.left')],
      { storage: 'undefined', none: 'number' },
    ],
    ['two requests for a cached file', [fetchCached, fetchCached], { ...both(2), none: 1 }],
    ['a shared worker', [evaluate(COUNT), evaluate(COUNT)], both(1)],
    ['messages on broadcast channels of a page and a worker', [postMessages, evaluate(LISTEN)], both([])],
    ['a timer of the previous task', [tick, expectSilence], both('silence')],
    ['a page that asks before it is left', [askBeforeUnload, look], both(expect.objectContaining(NOTHING))],
    ['a pop-up', [openPopUp, async (task) => pages(task)], both(1)],
    ['an open dialog', [evaluate('setTimeout(() => alert(1)), 0'), title], both('page')],
    ['a closed page', [({ page }) => page.close(), title], { ...both('page'), none: 'page' }],
    ['an HTTP login', [logIn, openMembers], { context: 'page', storage: 'member', none: 'member' }],
    ['a download, which is cancelled', [download('file'), eventsAfterCancel], both([])],
    ['a download, which continues', [download('file'), countLater], { none: 1 }],
    ['a download that is not answered yet', [download('late'), eventsAfterLateAnswer], both([])],
  ];
  const ROWS = CASES.flatMap(([what, steps, seen]) =>
    Object.entries(seen).map(([isolation, expected]) => ({ what, isolation, steps, expected })),
  );

  it.each(ROWS)(
    '$isolation: after $what, the next task returns $expected',
    async ({ isolation, steps, expected }) => {
      expect((await results(isolation as Isolation, ...steps)).at(-1)).toEqual(expected);
    },
  );

  it.each<[string, Step, object]>([
    ['hangs in a loop', ({ page }) => page.evaluate('while (true);'), { name: 'TaskTimeoutError' }],
    ['lost its browser, which was killed', killBrowser, { name: 'BrowserLostError' }],
  ])('a task that %s fails, and the next task has a working page', async (_what, step, reason) => {
    const outcomes = await collect(map(used.pool, [step, title], 'none', { taskTimeout: 8000 }));
    expect(outcomes).toMatchObject([{ status: 'rejected', reason }, { value: 'page' }]);
    await expect.poll(() => used.local.stats().leased).toBe(0);
  });

  it('leaves no page of a job in the released browser', async () => {
    await results('context', look, look);
    const own: Step = async (task) => pages(task);
    // These are the first page and the page of the task itself.
    expect(await results('none', own)).toEqual([2]);
  });
});

describe('Puppeteer over BiDi', () => {
  const map = (steps: Step[], isolation: Isolation) =>
    PUPPETEER.map(used.pool, steps, isolation, { protocol: 'bidi' });

  it.each(['context', 'none'] as const)('supports isolation %s', async (isolation) => {
    expect(await valuesOf(map([title, title], isolation))).toEqual(['page', 'page']);
  });

  it('rejects isolation storage, because BiDi has no commands for it', () => {
    expect(() => map([], 'storage')).toThrow(InvalidOptionError);
    expect(() => map([], 'storage')).toThrow(/BiDi.*isolation 'context'/);
  });
});

/** Kills the main process of the browser, and waits for the end of the task. */
async function killBrowser(): Promise<void> {
  const processes = processesOf(process.env['TMPDIR']!);
  kill(processes.find(({ command }) => command.includes('--user-data-dir') && !command.includes('--type='))!);
  await new Promise(() => {});
}
