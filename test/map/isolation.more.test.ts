import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { BrowserContext as PlaywrightContext } from 'playwright-core';
import type { BrowserContext as PuppeteerContext } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InvalidOptionError, type BrowserPool, type Isolation, type Outcomes } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { useLocalPool } from '../support/local.js';
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
  map(pool: BrowserPool, steps: Step[], isolation: Isolation): Outcomes<Step, unknown>;
  allowLocation(task: AnyTask, origin: string): Promise<unknown>;
  pages(task: AnyTask): number | Promise<number>;
}

const run = ({ input, ...task }: AnyTask & { input: Step }) => input(task);
const onOnePage = { concurrency: 1, ordered: true, taskTimeout: 240_000 } as const;

const PLAYWRIGHT: Driver = {
  name: 'Playwright over CDP',
  map: (pool, steps, isolation) =>
    playwright.mapPooledBrowsers(pool, steps, run, { ...onOnePage, isolation }),
  allowLocation: ({ context }, origin) =>
    (context as PlaywrightContext).grantPermissions(['geolocation'], { origin }),
  pages: ({ context }) => (context as PlaywrightContext).pages().length,
};
const PUPPETEER: Driver = {
  name: 'Puppeteer over CDP',
  map: (pool, steps, isolation) =>
    puppeteer.mapPooledBrowsers(pool, steps, run as never, { ...onOnePage, isolation }),
  allowLocation: ({ context }, origin) =>
    (context as PuppeteerContext).setPermission(origin, {
      permission: { name: 'geolocation' },
      state: 'granted',
    }),
  pages: async ({ context }) => (await (context as PuppeteerContext).pages()).length,
};
const BIDI: Driver = {
  ...PUPPETEER,
  name: 'Puppeteer over BiDi',
  map: (pool, steps, isolation) =>
    puppeteer.mapPooledBrowsers(pool, steps, run as never, { ...onOnePage, isolation, protocol: 'bidi' }),
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

let origin: string;
let other: string;
/** Number of requests of each path. */
const requests = new Map<string, number>();
const server = createServer(({ url = '', headers }, response) => {
  requests.set(url, (requests.get(url) ?? 0) + 1);
  const script = { 'content-type': 'text/javascript' };
  if (url === '/worker.js') return response.writeHead(200, script).end('');
  if (url === '/counter.js') return response.writeHead(200, script).end(COUNTER);
  if (url === '/cached') return response.writeHead(200, { 'cache-control': 'max-age=600' }).end('cached');
  if (url === '/members/login' && !headers.authorization) {
    return response.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end();
  }
  const title = url === '/members/page' && headers.authorization ? 'member' : 'page';
  return response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>${title}</title><p>text</p>`);
});

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  [origin, other] = [`http://127.0.0.1:${port}`, `http://localhost:${port}`];
});

afterAll(async () => {
  server.closeAllConnections();
  await once(server.close(), 'close');
});

describe.each([PLAYWRIGHT, PUPPETEER])('$name', ({ map, allowLocation, pages }) => {
  const used = useLocalPool();

  const look: Step = async ({ page }) => {
    await page.goto(origin);
    return page.evaluate(LOOK);
  };
  const leave: Step = async (task) => {
    await task.page.goto(origin);
    await allowLocation(task, origin);
    await task.page.evaluate(LEAVE);
  };

  const results = (isolation: Isolation, ...steps: Step[]): Promise<unknown[]> =>
    valuesOf(map(used.pool, steps, isolation));

  it.each(['context', 'storage'] as const)(
    '%s: a task sees no data that a site stored in the previous task',
    async (isolation) => {
      const [before, , after] = await results(isolation, look, leave, look);
      expect(before).toMatchObject({ cookie: '', caches: [], databases: [], workers: 0 });
      expect(after).toEqual(before);
    },
  );

  it('none: a task sees all data that a site stored in the previous task', async () => {
    const [before, , after] = await results('none', look, leave, look);
    expect(after).toMatchObject(LEFT);
    expect((after as { history: number }).history).toBeGreaterThan((before as { history: number }).history);
  });

  it.each([
    ['context', 3],
    ['storage', 1],
    ['none', 1],
  ] as const)('%s: three tasks run in %i page(s)', async (isolation, count) => {
    const page: Step = async (task) => (await leave(task), task.page);
    expect(new Set(await results(isolation, page, page, page)).size).toBe(count);
  });

  it('storage: a global of the previous task is gone, even if its page did not navigate', async () => {
    const set: Step = ({ page }) => page.evaluate('window.left = 1');
    const get: Step = ({ page }) => page.evaluate('typeof window.left');
    expect((await results('storage', set, get))[1]).toBe('undefined');
  });

  it.each(['context', 'storage'] as const)('%s: data that two origins stored is gone', async (isolation) => {
    const both: Step = async ({ page }) => {
      for (const url of [other, origin]) {
        await page.goto(url);
        await page.evaluate(LEAVE);
      }
    };
    const lookAtOther: Step = async ({ page }) => (await page.goto(other), page.evaluate(LOOK));
    const [before, , after, afterOther] = await results(isolation, look, both, look, lookAtOther);
    expect(after).toEqual(before);
    expect(afterOther).toEqual({
      ...(before as object),
      history: (afterOther as { history: number }).history,
    });
    expect(afterOther).toMatchObject({ cookie: '', caches: [], databases: [], workers: 0 });
  });

  it.each([
    ['context', 2],
    ['storage', 2],
    ['none', 1],
  ] as const)('%s: two tasks that fetch the same cached file send %i requests', async (isolation, count) => {
    requests.delete('/cached');
    const fetchIt: Step = async ({ page }) => {
      await page.goto(origin);
      return page.evaluate(`fetch('/cached').then((response) => response.text())`);
    };
    await results(isolation, fetchIt, fetchIt);
    expect(requests.get('/cached')).toBe(count);
  });

  it.each(['context', 'storage'] as const)('%s: a shared worker is gone', async (isolation) => {
    const count: Step = async ({ page }) => (await page.goto(origin), page.evaluate(COUNT));
    expect(await results(isolation, count, count)).toEqual([1, 1]);
  });

  it.each(['context', 'storage'] as const)('%s: broadcast channels are silent', async (isolation) => {
    const post: Step = async ({ page }) => {
      await page.goto(origin);
      await page.evaluate(COUNT);
      await page.evaluate(`setInterval(() => new BroadcastChannel('left').postMessage('page'), 50), 0`);
    };
    const listen: Step = async ({ page }) => (await page.goto(origin), page.evaluate(LISTEN));
    expect((await results(isolation, post, listen))[1]).toEqual([]);
  });

  it.each(['context', 'storage'] as const)('%s: a timer of the previous task is gone', async (isolation) => {
    const tick: Step = async ({ page }) => {
      await page.goto(origin);
      await page.evaluate(`setInterval(() => fetch('/tick'), 20), 0`);
      await expect.poll(() => requests.get('/tick')).toBeGreaterThan(0);
    };
    // With 'context', the previous context closes while the next task runs.
    const expectSilence: Step = async ({ page }) => {
      const count = async () => {
        const before = requests.get('/tick')!;
        await page.evaluate('new Promise((resolve) => setTimeout(resolve, 200))');
        return requests.get('/tick')! - before;
      };
      await expect.poll(count).toBe(0);
    };
    await results(isolation, tick, expectSilence);
  });

  it.each(['context', 'storage'] as const)('%s: a page that asks before it is left', async (isolation) => {
    const ask: Step = async ({ page }) => {
      await page.goto(origin);
      await page.click('body');
      await page.evaluate(`addEventListener('beforeunload', (event) => event.preventDefault()), 0`);
    };
    expect((await results(isolation, look, ask, look))[2]).toMatchObject({ cookie: '', databases: [] });
  });

  it.each(['context', 'storage'] as const)('%s: a pop-up is gone', async (isolation) => {
    const open: Step = async (task) => {
      await task.page.goto(origin);
      await task.page.evaluate(`window.open('${origin}/pop-up'), 0`);
      await expect.poll(() => pages(task)).toBe(2);
    };
    expect((await results(isolation, open, async (task) => pages(task)))[1]).toBe(1);
  });

  it.each(['context', 'storage'] as const)(
    '%s: an open dialog does not block the next task',
    async (isolation) => {
      const alert: Step = async ({ page }) => {
        await page.goto(origin);
        await page.evaluate('setTimeout(() => alert(1)), 0');
      };
      const title: Step = async ({ page }) => (await page.goto(origin), page.title());
      expect((await results(isolation, alert, title))[1]).toBe('page');
    },
  );

  it.each(['context', 'storage', 'none'] as const)('%s: a closed page is replaced', async (isolation) => {
    const close: Step = ({ page }) => page.close();
    const title: Step = async ({ page }) => (await page.goto(origin), page.title());
    expect((await results(isolation, close, title))[1]).toBe('page');
  });

  it.each([
    ['context', 'page'],
    ['storage', 'member'],
    ['none', 'member'],
  ] as const)('%s: after an HTTP login, the next task gets the title %s', async (isolation, title) => {
    const logIn: Step = ({ page }) => page.goto(`${origin.replace('//', '//user:password@')}/members/login`);
    const ask: Step = async ({ page }) => (await page.goto(`${origin}/members/page`), page.title());
    expect((await results(isolation, logIn, ask))[1]).toBe(title);
  });

  it('leaves no page of a job in the released browser', async () => {
    await results('context', look, look);
    const own: Step = async (task) => pages(task);
    // These are the first page and the page of the task itself.
    expect(await results('none', own)).toEqual([2]);
  });
});

describe('Puppeteer over BiDi', () => {
  const used = useLocalPool();
  const title: Step = async ({ page }) => (await page.goto(origin), page.title());

  it.each(['context', 'none'] as const)('supports isolation %s', async (isolation) => {
    const outcomes = await collect(BIDI.map(used.pool, [title, title], isolation));
    expect(outcomes).toMatchObject([{ value: 'page' }, { value: 'page' }]);
  });

  it('rejects isolation storage, because BiDi has no commands for it', () => {
    expect(() => BIDI.map(used.pool, [], 'storage')).toThrow(InvalidOptionError);
    expect(() => BIDI.map(used.pool, [], 'storage')).toThrow(/BiDi.*isolation 'context'/);
  });
});
