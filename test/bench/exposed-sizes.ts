/**
 * `npm run bench -- exposed-sizes`: large responses and uploads of an exposed app, and the memory that they need: of this process,
 * and of the browser, above that before. The pool and the app are processes of their own. The browser does not reach the app by
 * itself, except in the rows `without`. Linux only. DOWNLOADS (default 80), MB (default 60).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { BrowserPool } from 'pooled-browser';
import { withPooledBrowser } from 'pooled-browser/playwright';
import { printTable, serveApp, servePool, setting, time } from './bench.js';

const DOWNLOADS = setting('DOWNLOADS', 80);
const MB = setting('MB', 60);
const MEGABYTE = 1024 * 1024;

await using served = await servePool();
const { app, port, site } = await serveApp();
const pool = new BrowserPool('bench', served.service);

/** Resident memory in MB of all processes below one. */
function memoryBelow(pid: number): number {
  const parents = new Map<number, { parent: number; size: number }>();
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    try {
      const status = readFileSync(`/proc/${name}/status`, 'utf8');
      const read = (field: string) => Number(new RegExp(`^${field}:\\s*(\\d+)`, 'm').exec(status)?.[1] ?? 0);
      parents.set(Number(name), { parent: read('PPid'), size: read('RssAnon') / 1024 });
    } catch {
      // It has ended.
    }
  }
  const isBelow = (one: number): boolean => one === pid || isBelowOf(parents.get(one)?.parent);
  const isBelowOf = (parent: number | undefined) => parent !== undefined && parent > 1 && isBelow(parent);
  return [...parents].reduce((sum, [one, { size }]) => sum + (one !== pid && isBelow(one) ? size : 0), 0);
}

/** Runs work, and returns the most memory above that before, in MB. */
async function measure(work: () => Promise<unknown>) {
  const own = () => process.memoryUsage().rss / MEGABYTE;
  const before = { own: own(), browser: memoryBelow(served.pid) };
  const most = { ...before };
  let isOver = false;
  const sampling = (async () => {
    while (!isOver) {
      most.own = Math.max(most.own, own());
      most.browser = Math.max(most.browser, memoryBelow(served.pid));
      await delay(50);
    }
  })();
  let outcome: unknown;
  const duration = await time(
    async () => (outcome = await work().catch((error: Error) => error.message.split('\n')[0])),
  );
  isOver = true;
  await sampling;
  return [
    String(outcome),
    `${(duration / 1000).toFixed(1)} s`,
    (most.own - before.own).toFixed(0),
    (most.browser - before.browser).toFixed(0),
  ];
}

interface AnyPage {
  goto(url: string): Promise<unknown>;
  evaluate(script: string): Promise<unknown>;
  waitForEvent(name: 'download', options: object): Promise<{ failure(): Promise<unknown> }>;
}

const inPage = (code: string) => (page: AnyPage) =>
  page.evaluate(`(async () => { ${code} })().catch(String)`);
/** The page reads each response in parts, and keeps none. */
const download = (mb: number) => `const reader = (await fetch('/bytes?mb=${mb}')).body.getReader();
  for (let part; !(part = await reader.read()).done; ) size += part.value.length;`;

const LOADS: Record<string, (page: AnyPage) => Promise<unknown>> = {
  [`${DOWNLOADS} downloads of ${MB} MB, 8 at once`]: inPage(`let size = 0; let left = ${DOWNLOADS};
    const load = async () => { while (left-- > 0) { ${download(MB)} } };
    await Promise.all(Array.from({ length: 8 }, load)); return size / ${MEGABYTE} + ' MB';`),
  'a download of 1 GB': inPage(`let size = 0; ${download(1024)} return size / ${MEGABYTE} + ' MB';`),
  'an attachment of 1 GB': async (page) => {
    const waiting = page.waitForEvent('download', { timeout: 60_000 });
    await page.goto(`${site}/bytes?mb=1024&attachment`).catch(() => {});
    return (await (await waiting).failure()) ?? 'saved';
  },
  'an upload of 150 MB': inPage(
    `const body = new Blob(Array.from({ length: 150 }, () => new Uint8Array(${MEGABYTE}).fill(97)));
    return (await (await fetch('/upload', { method: 'POST', body })).text()) / ${MEGABYTE} + ' MB';`,
  ),
};

for (const [load, run] of Object.entries(LOADS)) {
  const rows: string[][] = [];
  for (const [way, exposeNetwork] of Object.entries({ without: undefined, with: `127.0.0.1:${port}` })) {
    const use = async ({ page }: { page: AnyPage }) => {
      await page.goto(`${site}/plain`);
      rows.push([way, ...(await measure(() => run(page)))]);
    };
    await withPooledBrowser(pool, use, { exposeNetwork, context: 'new', release: 'destroy' });
  }
  printTable(
    [`exposeNetwork: ${load}`, 'outcome', 'time', 'this process, MB more', 'browser, MB more'],
    rows,
  );
}
app.kill();
await pool.close();
