import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { useLocalPool } from '../support/local.js';
import { useSite } from '../support/site.js';
import { valuesOf } from './support.js';

/** What this test uses of the pages of both libraries. */
interface Task {
  page: { goto(url: string): Promise<unknown>; evaluate(script: string): Promise<unknown> };
  context: object;
}

/** Requests whose response waits for the next task. */
const held = new Set<ServerResponse>();
const WORKER = `onfetch = () => {}; setInterval(() => fetch('/cookie'), 5);`;
const site = useSite(({ url = '' }, response) => {
  response.setHeader('content-type', url.endsWith('.js') ? 'text/javascript' : 'text/html');
  if (!/^\/(favicon.ico)?$/.test(url)) response.setHeader('set-cookie', 'left=1; path=/');
  if (url.startsWith('/held')) return held.add(response);
  return response.end(url.endsWith('.js') ? WORKER : '<p>text');
});

const used = useLocalPool();
/** Requests that were open at the end of a job count in the next one, so each job has a fresh browser. */
const OPTIONS = {
  concurrency: 1,
  ordered: true,
  isolation: 'storage',
  release: 'destroy',
} as const;
type Step = (task: Task) => Promise<unknown>;
const DRIVERS = [
  {
    name: 'Playwright',
    map: (steps: Step[]) =>
      playwright.mapPooledBrowsers(used.pool, steps, ({ input, ...task }) => input(task), OPTIONS),
  },
  {
    name: 'Puppeteer',
    map: (steps: Step[]) =>
      puppeteer.mapPooledBrowsers(used.pool, steps, ({ input, ...task }) => input(task as Task), OPTIONS),
  },
];

const onPageHide = (script: string) => `addEventListener('pagehide', () => { ${script} })`;
const requested = async () => {
  await expect.poll(() => held.size).toBeGreaterThan(0);
};

describe.each(DRIVERS)('$name', ({ map }) => {
  it.each<[what: string, script: string, then?: Step]>([
    ['a sendBeacon when the page is left', onPageHide(`navigator.sendBeacon('/held')`)],
    ['a fetch with keepalive when the page is left', onPageHide(`fetch('/held', { keepalive: true })`)],
    ['an open sendBeacon', `navigator.sendBeacon('/held')`, requested],
    ['an open fetch with keepalive', `fetch('/held', { keepalive: true })`, requested],
    ['an open fetch', `fetch('/held')`, requested],
    ['fetches of a timer', `setInterval(() => fetch('/cookie'), 5)`, () => sleep(50)],
    ['a window.name that is set when the page is left', onPageHide(`window.name = 'left'`)],
    ['a service worker with a timer', `navigator.serviceWorker.register('/worker.js')`, () => sleep(200)],
  ])('%s does not reach the next task', async (_what, script, then) => {
    const leave: Step = async (task) => {
      await task.page.goto(site.url);
      await task.page.evaluate(`{ ${script}; 0 }`);
      await then?.(task);
    };
    const look: Step = async ({ page }) => {
      for (const response of held) response.end();
      held.clear();
      await sleep(100);
      const seen: unknown[] = [];
      for (const url of [site.url, site.as('localhost')]) {
        await page.goto(url);
        const script = `[document.cookie, localStorage.left, sessionStorage.left, window.name].join()`;
        seen.push(await page.evaluate(script));
      }
      return seen;
    };
    expect((await valuesOf(map([leave, look]))).at(-1)).toEqual([',,,', ',,,']);
  });

  it('tasks of two sites share one page, also after a completed fetch with keepalive', async () => {
    const visit: Step = async ({ page, context }) => {
      await page.goto(site.url);
      await page.evaluate(`fetch('/cookie', { keepalive: true }).then((response) => response.text())`);
      await page.goto(site.as('localhost'));
      return context;
    };
    expect(new Set(await valuesOf(map([visit, visit, visit]))).size).toBe(1);
  });
});
