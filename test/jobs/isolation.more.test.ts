import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BrowserContext as PlaywrightContext, Page as PlaywrightPage } from 'playwright-core';
import type { BrowserContext as PuppeteerContext, Page as PuppeteerPage } from 'puppeteer-core';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Isolation, MapOptions, Outcomes } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { useLocalPool } from '../support/local.js';
import { useSite } from '../support/site.js';
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
  map(steps: Step[], isolation: Isolation, options?: MapOptions): Outcomes<Step, unknown>;
  allowLocation(task: AnyTask): Promise<unknown>;
  pages(task: AnyTask): number | Promise<number>;
  /** Collects the download events of the automation library. */
  listen(task: AnyTask): Promise<string[]>;
}

const used = useLocalPool();
const run = ({ input, ...task }: AnyTask & { input: Step }) => input(task);
const ONE_PAGE = { concurrency: 1, ordered: true, taskTimeout: 240_000 } as const;

const PLAYWRIGHT: Driver = {
  name: 'Playwright over CDP',
  map: (steps, isolation, options) =>
    playwright.mapPooledBrowsers(used.pool, steps, run, { ...ONE_PAGE, ...(options as object), isolation }),
  allowLocation: ({ context }) =>
    (context as PlaywrightContext).grantPermissions(['geolocation'], { origin: site.url }),
  pages: ({ context }) => (context as PlaywrightContext).pages().length,
  listen: async ({ page }) => {
    const seen: string[] = [];
    (page as PlaywrightPage).on('download', (download) => void seen.push(download.url()));
    return seen;
  },
};
const PUPPETEER: Driver = {
  name: 'Puppeteer over CDP',
  map: (steps, isolation, options) =>
    puppeteer.mapPooledBrowsers(used.pool, steps, run as never, { ...ONE_PAGE, ...options, isolation }),
  allowLocation: ({ context }) =>
    (context as PuppeteerContext).setPermission(site.url, {
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

/** Number of requests of each path. */
const requests = new Map<string, number>();
/** The responses that have not ended. */
const held = new Set<ServerResponse>();
beforeEach(() => requests.clear());
/** A step that counts requests from its beginning. */
const beginning =
  (step: Step): Step =>
  (task) => (requests.clear(), step(task));
/** Milliseconds for a job of many tasks. */
const SLOW = 300_000;

/** Sends requests all the time, but gives a slow machine no more than it can do. */
const REQUESTS = `let open = 0;
setInterval(() => open++ < 6 ? fetch('/cookie').finally(() => open--) : open--, 5);`;

const SCRIPTS: Record<string, string> = {
  '/worker.js': '',
  '/busy-worker.js': `onfetch = () => {}; ${REQUESTS}`,
  // Counts its pages, and does not end while it has one.
  '/counter.js': `let pages = 0;
onconnect = ({ ports: [port] }) => port.postMessage(++pages);
setInterval(() => new BroadcastChannel('left').postMessage('worker'), 50);`,
};
const BODY = '<p>text</p><a id=file href=/file download>file</a><a id=late href=/late download>late</a>';
const site = useSite(({ url = '', headers }, response) => {
  requests.set(url, (requests.get(url) ?? 0) + 1);
  if (url in SCRIPTS) return response.setHeader('content-type', 'text/javascript').end(SCRIPTS[url]);
  if (/^\/(cookie|held)$/.test(url)) response.setHeader('set-cookie', 'left=1; path=/');
  if (/^\/(file|late|held)$/.test(url)) {
    held.add(response.once('close', () => held.delete(response)));
    return url === '/file' && beginFile(response);
  }
  if (url === '/cached') return response.writeHead(200, { 'cache-control': 'max-age=600' }).end('cached');
  if (url === '/members/login' && !headers.authorization)
    return response.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end();
  const title = url === '/members/page' && headers.authorization ? 'member' : 'page';
  return response.setHeader('content-type', 'text/html').end(`<title>${title}</title>${BODY}`);
});

/** The file is never complete. */
function beginFile(response: ServerResponse): void {
  const disposition = { 'content-disposition': 'attachment; filename=file.bin' };
  response.writeHead(200, { 'content-type': 'application/octet-stream', ...disposition });
  response.write('x'.repeat(1000));
}

/** Opens the page of the site, and runs a script in it. */
const evaluate =
  (script: string): Step =>
  async ({ page }) => (await page.goto(site.url), page.evaluate(script));
const inOther =
  (script: string): Step =>
  async ({ page }) => (await page.goto(site.as('localhost')), page.evaluate(script));
const title: Step = async ({ page }) => (await page.goto(site.url), page.title());
const isRequested = async (path: string) => {
  await expect.poll(() => requests.get(path)).toBeGreaterThan(0);
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
const look = evaluate(LOOK);

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

const COUNT = `new Promise((resolve) => {
  new SharedWorker('/counter.js').port.onmessage = ({ data }) => resolve(data);
})`;

/** Returns what is received on the channel within half a second. */
const LISTEN = `new Promise((resolve) => {
  const received = [];
  new BroadcastChannel('left').onmessage = ({ data }) => received.push(data);
  setTimeout(resolve, 500, received);
})`;

describe.each([PLAYWRIGHT, PUPPETEER])('$name', ({ map, allowLocation, pages, listen }) => {
  const results = (isolation: Isolation, ...steps: Step[]): Promise<unknown[]> =>
    valuesOf(map(steps, isolation));

  const leave: Step = async (task) => {
    await task.page.goto(site.url);
    await allowLocation(task);
    await task.page.evaluate(LEAVE);
  };

  it.each(['context', 'storage'] as const)(
    '%s: a task sees no data that two origins stored in the previous task',
    async (isolation) => {
      const leaveAtBoth: Step = async (task) => (await inOther(LEAVE)(task), leave(task));
      const [before, , after, other] = await results(isolation, look, leaveAtBoth, look, inOther(LOOK));
      expect(before).toMatchObject(NOTHING);
      expect(after).toEqual(before);
      expect(other).toEqual({ ...(before as Seen), history: (other as Seen).history });
    },
  );

  it('none: a task sees all data that a site stored in the previous task, and the next job sees none', async () => {
    const [before, , after] = await results('none', look, leave, look);
    expect(after).toMatchObject(LEFT);
    expect((after as Seen).history).toBeGreaterThan((before as Seen).history);
    // The browser has the first page of the lease, and that of the task.
    const [later, count] = await results('none', look, async (task) => pages(task));
    expect([later, count]).toEqual([before, 2]);
  });

  it.each([
    ['context', 3],
    ['storage', 1],
    ['none', 1],
  ] as const)('%s: three tasks that store data of two sites run in %i page(s)', async (isolation, count) => {
    const visit: Step = async (task) => {
      await inOther(`localStorage.left = '1'`)(task);
      await evaluate(`fetch('/cookie', { keepalive: true }).then((response) => response.text())`)(task);
      return task.page;
    };
    expect(new Set(await results(isolation, visit, visit, visit)).size).toBe(count);
  });

  const tick: Step = async (task) => {
    await evaluate(`setInterval(() => fetch('/tick'), 20), 0`)(task);
    await isRequested('/tick');
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
    await evaluate(`window.open('/pop-up'), 0`)(task);
    await expect.poll(() => pages(task)).toBe(2);
  };
  const askBeforeUnload: Step = async ({ page }) => {
    await page.goto(site.url);
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
      await task.page.goto(site.url);
      await task.page.click(`#${link}`);
      await expect.poll(() => held.size).toBe(1);
      if (link === 'file') await expect.poll(() => seen).toContain(`${site.url}/file`);
    };
  const eventsAfterCancel: Step = async (task) => {
    const seen = await listen(task);
    await task.page.goto(site.url);
    await expect.poll(() => held.size).toBe(0);
    return seen;
  };
  const countLater: Step = async (task) => (await title(task), await sleep(300), held.size);
  const eventsAfterLateAnswer: Step = async (task) => {
    const seen = await listen(task);
    await task.page.goto(site.url);
    held.forEach(beginFile);
    await sleep(500);
    return seen;
  };

  const postMessages: Step = async (task) => {
    await evaluate(COUNT)(task);
    await task.page.evaluate(`setInterval(() => new BroadcastChannel('left').postMessage('page'), 50), 0`);
  };
  const logIn: Step = ({ page }) => page.goto(`${site.url.replace('//', '//user:password@')}/members/login`);
  const openMembers: Step = async ({ page }) => (await page.goto(`${site.url}/members/page`), page.title());

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
    ['an HTTP login', [logIn, openMembers], { context: 'page', storage: 'page', none: 'member' }],
    ['a download, which is cancelled', [download('file'), eventsAfterCancel], both([])],
    ['a download, which continues', [download('file'), countLater], { none: 1 }],
    ['a download that is not answered yet', [download('late'), eventsAfterLateAnswer], both([])],
  ];
  // All tasks of an isolation in one lease, which takes longer than most of them.
  it.each(['context', 'storage', 'none'] as const)(
    '%s: the next task sees only what this isolation keeps of the previous one',
    async (isolation) => {
      const cases = CASES.filter(([, , seen]) => isolation in seen);
      const steps = cases.flatMap(([, [first, ...rest]]) => [beginning(first!), ...rest]);
      const values = await results(isolation, ...steps);
      const ends = cases.map(([what, own], index) => {
        const before = cases.slice(0, index).flatMap(([, others]) => others).length;
        return [what, values[before + own.length - 1]];
      });
      expect(ends).toEqual(cases.map(([what, , seen]) => [what, seen[isolation]]));
    },
    SLOW,
  );

  it('a task that hangs in a loop fails, and the next task has a working page', async () => {
    const hang: Step = ({ page }) => page.evaluate('while (true);');
    const outcomes = await collect(map([hang, title], 'none', { taskTimeout: 5000 }));
    const reason = { name: 'TaskTimeoutError' };
    expect(outcomes).toMatchObject([{ status: 'rejected', reason }, { value: 'page' }]);
  });
});

const onPageHide = (script: string) => `addEventListener('pagehide', () => { ${script} })`;

/** What a task leaves open, or does when its page is left, and what the next one waits for. */
const LATE: [what: string, script: string, then?: () => Promise<unknown>][] = [
  ['a sendBeacon when the page is left', onPageHide(`navigator.sendBeacon('/held')`)],
  ['a fetch with keepalive when the page is left', onPageHide(`fetch('/held', { keepalive: true })`)],
  ['an open sendBeacon', `navigator.sendBeacon('/held')`, () => isRequested('/held')],
  ['an open fetch with keepalive', `fetch('/held', { keepalive: true })`, () => isRequested('/held')],
  ['an open fetch', `fetch('/held')`, () => isRequested('/held')],
  ['fetches of a timer', REQUESTS, () => sleep(50)],
  ['a window.name that is set when the page is left', onPageHide(`window.name = 'left'`)],
  ['a service worker with a timer', `navigator.serviceWorker.register('/busy-worker.js')`, () => sleep(200)],
];

// These are independent of the automation library, except the service worker.
it.each([
  [PLAYWRIGHT.name, PLAYWRIGHT, LATE],
  [PUPPETEER.name, PUPPETEER, LATE.slice(-1)],
] as const)(
  'storage, %s: what is open, or happens when the page is left, does not reach the next task',
  async (_name, { map }, late) => {
    const lookLater: Step = async (task) => {
      for (const response of held) response.end();
      await sleep(100);
      const SEEN = `[document.cookie, localStorage.left, sessionStorage.left, window.name].join()`;
      return [await evaluate(SEEN)(task), await inOther(SEEN)(task)];
    };
    const steps = late.flatMap(([, script, then]) => {
      const leave: Step = async (task) => {
        await evaluate(`{ ${script}; 0 }`)(task);
        await then?.();
      };
      return [beginning(leave), lookLater];
    });
    // Requests that are open at the end of a job count in the next one, so the job has a fresh browser.
    const values = await valuesOf(map(steps, 'storage', { release: 'destroy' }));
    const seen = late.map(([what], index) => [what, values[2 * index + 1]]);
    expect(seen).toEqual(late.map(([what]) => [what, [',,,', ',,,']]));
  },
  SLOW,
);

it.each(['context', 'none'] as const)('Puppeteer over BiDi supports isolation %s', async (isolation) => {
  const outcomes = PUPPETEER.map([title, title], isolation, { protocol: 'bidi' });
  expect(await valuesOf(outcomes)).toEqual(['page', 'page']);
});
