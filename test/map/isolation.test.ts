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
import { collect } from './support.js';

/** The part of the pages and contexts of both libraries that these tests use. */
interface AnyTask {
  page: {
    goto(url: string): Promise<unknown>;
    evaluate<Value>(script: string): Promise<Value>;
    title(): Promise<string>;
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
const onOnePage = { concurrency: 1, ordered: true, taskTimeout: 20_000 } as const;

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

let origin: string;
let other: string;
const server = createServer(({ url, headers }, response) => {
  if (url === '/worker.js') return response.writeHead(200, { 'content-type': 'text/javascript' }).end('');
  if (url === '/members/login' && !headers.authorization) {
    return response.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end();
  }
  const title = url === '/members/page' && headers.authorization ? 'member' : 'page';
  return response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>${title}</title>`);
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

  /** Returns the values of the steps. A failed step fails the test. */
  async function results(isolation: Isolation, ...steps: Step[]): Promise<unknown[]> {
    const outcomes = await collect(map(used.pool, steps, isolation));
    return outcomes.map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    });
  }

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
