/**
 * `npm run bench:recording`: what recording costs. The same job, an animated page that also works, without a recording
 * and with one at 10 and at 25 frames per second, in turn, in one run: CPU of this process (client and pool) and of all
 * Chromium processes, memory, and what the film takes on disk.
 * Reads /proc, so Linux only. SECONDS (default 20) sets how long each job lasts, ROUNDS (default 3) how often.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { startLocalPool, type LocalPool, type LocalPoolEvent } from '../../src/local.js';
import type { BrowserSession } from '../../src/service/wire.js';
import { median, printTable } from './figures.js';

const SECONDS = Number(process.env['SECONDS'] ?? 20);
const ROUNDS = Number(process.env['ROUNDS'] ?? 3);
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;
const RATES = [undefined, 10, 25] as const;

/** A page of text in which something moves, and which computes a little. */
const PAGE = `data:text/html,${encodeURIComponent(`<body style="font:16px sans-serif"><h1 id="clock"></h1><div id="bar"
  style="width:200px;height:80px;background:teal"></div><p>${'What the user of this page reads. '.repeat(150)}<script>
  (function tick(now = 0) {
    clock.textContent = (now / 1000).toFixed(2);
    bar.style.marginLeft = (now / 5) % 800 + 'px';
    for (let sum = 0, step = 0; step < 200000; step++) sum += Math.sqrt(step);
    requestAnimationFrame(tick);
  })();
</script>`)}`;

interface Figures {
  node: number[];
  browsers: number[];
  film: number[];
  rss: number[];
  megabytes: number[];
}

const figures = new Map(RATES.map((rate) => [rate, emptyFigures()]));
const finished: Extract<LocalPoolEvent, { type: 'recording-finished' }>[] = [];
const onLog = (event: LocalPoolEvent) => event.type === 'recording-finished' && finished.push(event);
await using local = await startLocalPool({ pools: [{ viewport: { width: 1280, height: 720 } }], onLog });
for (let round = 0; round < ROUNDS; round++)
  for (const rate of RATES) await measure(local, rate, figures.get(rate)!);

printTable(
  ['recording', 'node, CPU', 'Chromium, CPU', 'memory, most', 'film', 'making the film, CPU'],
  RATES.map((rate) => {
    const { node, browsers, film, rss, megabytes } = figures.get(rate)!;
    return [
      rate === undefined ? 'none' : `${rate} frames/s`,
      `${(median(node) * 100).toFixed(0)} %`,
      `${(median(browsers) * 100).toFixed(0)} %`,
      `${median(rss).toFixed(0)} MB`,
      rate === undefined ? '' : `${median(megabytes).toFixed(1)} MB/min`,
      rate === undefined ? '' : `${median(film).toFixed(1)} s per min`,
    ];
  }),
);
console.log(`Median of ${ROUNDS} rounds of ${SECONDS} s; 100 % is one core.`);
process.exit();

async function measure({ baseUrl, token }: LocalPool, rate: number | undefined, to: Figures): Promise<void> {
  const call = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(baseUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
    return response.status === 204 ? {} : ((await response.json()) as object);
  };
  const session = (await call('/browser_pools/default/acquire', {})) as BrowserSession;
  const browser = await chromium.connectOverCDP(session.cdp_ws_url);
  const page = browser.contexts()[0]!.pages()[0]!;
  await page.goto(PAGE);
  if (rate !== undefined) await call(`/browsers/${session.session_id}/replays`, { framerate: rate });
  const [before, started] = [usage(), performance.now()];
  let most = 0;
  while (performance.now() - started < SECONDS * 1000) {
    await page.evaluate('document.title');
    most = Math.max(most, usage().megabytes);
    await sleep(250);
  }
  const after = usage();
  const { node, browsers } = spent(before, after);
  to.node.push(node / SECONDS);
  to.browsers.push(browsers / SECONDS);
  to.rss.push(most);
  await browser.close();
  await call('/browser_pools/default/release', { session_id: session.session_id });
  if (rate === undefined) return;
  while (finished.length === 0) await sleep(50);
  const { milliseconds, bytes } = finished.pop()!;
  const making = spent(after, usage());
  to.megabytes.push((bytes / 1e6 / milliseconds) * 60_000);
  to.film.push(((making.browsers + making.node) / milliseconds) * 60_000);
}

/** CPU seconds so far by process: this one, and all below it; and their memory in MB. */
interface Usage {
  readonly seconds: ReadonlyMap<number, number>;
  readonly megabytes: number;
}

function usage(): Usage {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => readStat(Number(pid)));
  const ours = new Set([process.pid]);
  for (let size = 0; size !== ours.size;) {
    size = ours.size;
    for (const { pid, parent } of all) if (ours.has(parent)) ours.add(pid);
  }
  const found = all.filter(({ pid }) => ours.has(pid));
  return {
    seconds: new Map(found.map(({ pid, seconds }) => [pid, seconds])),
    megabytes: found.reduce((sum, { megabytes }) => sum + megabytes, 0),
  };
}

/** Fields 4, 14, 15 and 24 of proc(5); nothing for a process that is gone. */
function readStat(pid: number): { pid: number; parent: number; seconds: number; megabytes: number }[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const [parent = 0, user = 0, system = 0, pages = 0] = [fields[1], fields[11], fields[12], fields[21]];
    const megabytes = (pages * PAGE_BYTES) / 1024 / 1024;
    return [{ pid, parent, seconds: (user + system) / TICKS_PER_SECOND, megabytes }];
  } catch {
    return [];
  }
}

/** CPU seconds between the two. What a process took that is gone meanwhile is nobody's. */
function spent(before: Usage, after: Usage): { node: number; browsers: number } {
  const spans = [...after.seconds].map(([pid, seconds]) => [pid, seconds - (before.seconds.get(pid) ?? 0)]);
  const sum = (ofNode: boolean) =>
    spans.reduce((total, [pid, span = 0]) => ((pid === process.pid) === ofNode ? total + span : total), 0);
  return { node: sum(true), browsers: sum(false) };
}

function emptyFigures(): Figures {
  return { node: [], browsers: [], film: [], rss: [], megabytes: [] };
}
