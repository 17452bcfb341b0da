/**
 * `npm run bench:recording`: the cost of recording. The same job on an animated page without a recording, and with one
 * at 10 and at 25 frames per second: CPU of this process (client and pool) and of all Chromium processes, memory, and
 * the video's size. Reads /proc, so it runs only on Linux. SECONDS (default 20) a job, ROUNDS (default 3).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { BrowserPool } from '../../src/index.js';
import { startLocalPool, type LocalPoolEvent } from '../../src/local.js';
import { compare, printComparison, setting } from './bench.js';

const SECONDS = setting('SECONDS', 20);
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;

/** A page of text in which something moves, and which computes a little. */
const PAGE = `data:text/html,${encodeURIComponent(`<body style="font:16px sans-serif"><h1 id="clock"></h1><div id="bar"
  style="width:200px;height:80px;background:teal"></div><p>${'This text fills the page. '.repeat(150)}<script>
  (function tick(now = 0) {
    clock.textContent = (now / 1000).toFixed(2);
    bar.style.marginLeft = (now / 5) % 800 + 'px';
    for (let sum = 0, step = 0; step < 200000; step++) sum += Math.sqrt(step);
    requestAnimationFrame(tick);
  })();
</script>`)}`;

const UNITS = {
  'CPU of node': '% of a core',
  'CPU of Chromium': '% of a core',
  'most memory': 'MB',
  video: 'MB/min',
  'CPU for the video': 's/min',
};
const finished: Extract<LocalPoolEvent, { type: 'recording-finished' }>[] = [];
const onLog = (event: LocalPoolEvent) => event.type === 'recording-finished' && finished.push(event);
await using local = await startLocalPool({ pools: [{ viewport: { width: 1280, height: 720 } }], onLog });
const pool = new BrowserPool('default', { baseUrl: local.baseUrl, token: local.token });
const ways = {
  'no recording': () => measure(),
  '10 frames/s': () => measure(10),
  '25 frames/s': () => measure(25),
};
const rounds = setting('ROUNDS', 3);
const subject = `a job of ${SECONDS} s`;
const peers = ['no recording'];
printComparison(await compare({ subject, ways, units: UNITS, peers, rounds, warmUp: 0 }), peers);
process.exit();

async function measure(framerate?: number): Promise<Partial<Record<keyof typeof UNITS, number>>> {
  const session = (await pool.acquire({ acquire_timeout_seconds: 30 }))!;
  const browser = await chromium.connectOverCDP(session.cdp_ws_url);
  const page = browser.contexts()[0]!.pages()[0]!;
  await page.goto(PAGE);
  if (framerate !== undefined) await startRecording(session.session_id, framerate);
  const before = usage();
  const end = performance.now() + SECONDS * 1000;
  let memory = 0;
  while (performance.now() < end) {
    await page.evaluate('document.title');
    memory = Math.max(memory, usage().megabytes);
    await sleep(250);
  }
  const after = usage();
  const { node, browsers } = spent(before, after);
  await browser.close();
  await pool.release(session.session_id);
  const figures = {
    'CPU of node': (100 * node) / SECONDS,
    'CPU of Chromium': (100 * browsers) / SECONDS,
    'most memory': memory,
  };
  if (framerate === undefined) return figures;
  while (finished.length === 0) await sleep(50);
  const { milliseconds, bytes } = finished.pop()!;
  const making = spent(after, usage());
  const perMinute = 60_000 / milliseconds;
  return {
    ...figures,
    video: (bytes / 1e6) * perMinute,
    'CPU for the video': (making.browsers + making.node) * perMinute,
  };
}

async function startRecording(sessionId: string, framerate: number): Promise<void> {
  const headers = { authorization: `Bearer ${local.token}` };
  const url = `${local.baseUrl}/browsers/${sessionId}/replays`;
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ framerate }) });
  if (!response.ok) throw new Error(`The recording was refused with status ${response.status}`);
}

/** CPU seconds so far of this process and of each process below it, and their memory in all. */
interface Usage {
  readonly seconds: ReadonlyMap<number, number>;
  readonly megabytes: number;
}

function usage(): Usage {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const all = pids.flatMap((pid) => readStat(Number(pid)));
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

/** Fields 4, 14, 15 and 24 of proc(5); nothing for a process that has ended. */
function readStat(pid: number): { pid: number; parent: number; seconds: number; megabytes: number }[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [parent, user, system, pages] = [1, 11, 12, 21].map((field) => Number(fields[field])) as [
      number,
      number,
      number,
      number,
    ];
    const seconds = (user + system) / TICKS_PER_SECOND;
    return [{ pid, parent, seconds, megabytes: (pages * PAGE_BYTES) / 2 ** 20 }];
  } catch {
    return [];
  }
}

/** CPU seconds between two moments. Processes that have ended in the meantime do not count. */
function spent(before: Usage, after: Usage): { node: number; browsers: number } {
  const sums = { node: 0, browsers: 0 };
  for (const [pid, seconds] of after.seconds)
    sums[pid === process.pid ? 'node' : 'browsers'] += seconds - (before.seconds.get(pid) ?? 0);
  return sums;
}
