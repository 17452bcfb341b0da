/**
 * What `replays: 'record'` costs the recorded pages. Leases of a local pool, side by side, each with one page that is
 * animated or still; the time of ten actions (fills and clicks), and the animation frames of the page, of leases that are
 * recorded and of leases that are not, alternating. Also the pictures per second, and the memory of the pool's process.
 * BY=client: this process records, not the pool. DELAY (ms, default 0): of the link to the
 * pool and its browsers, over TLS, in both directions together.
 * LEASES (default 1,2,4,8), ROUNDS (default 5), ACTIONS (default 40): of each lease and round.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BufferSource, Input, WEBM } from 'mediabunny';
import type { Page } from 'playwright-core';
import { BrowserPool } from 'pooled-browser';
import { withPooledBrowser } from 'pooled-browser/playwright';
import { DelayProxy } from './delay-proxy.js';
import { median, printTable, servePool, setting } from './bench.js';

declare global {
  var ticks: number;
}

const LEASES = (process.env['LEASES'] ?? '1,2,4,8').split(',').map(Number);
const BY = process.env['BY'] === 'client' ? 'client' : 'service';
const DELAY = setting('DELAY', 0);
// The certificate of the delayed link is its own.
if (DELAY > 0) process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
const ROUNDS = setting('ROUNDS', 5);
const ACTIONS = setting('ACTIONS', 40);
/** Milliseconds of each measurement of pictures and frames, at least. */
const LEAST = 3_000;

const PAGES = {
  animated: `@keyframes turn { to { transform: rotate(360deg) } } .box { animation: turn 2s linear infinite }`,
  still: '',
};

const html = (style: string) => `<style>
    body { font: 16px sans-serif } ${style}
    .box { display: inline-block; width: 80px; height: 80px; margin: 20px; background: linear-gradient(teal, gold) }
  </style><h1>Orders</h1><input id="name"><button id="add">Add</button><output id="count">0</output>
  <p>${'<span class="box"></span>'.repeat(24)}</p><ul id="list"></ul><script>
    let clicks = 0;
    add.onclick = () => { count.value = ++clicks; list.textContent = document.getElementById('name').value; };
    globalThis.ticks = 0;
    ${style === '' ? '' : '(function tick() { globalThis.ticks++; requestAnimationFrame(tick); })();'}
  </script>`;

interface Measured {
  /** Milliseconds of ten actions. */
  ten: number;
  framesPerSecond: number;
  picturesPerSecond: number;
}

const folder = mkdtempSync(join(tmpdir(), 'bench-recording-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const RECORDING = { by: BY, ...(BY === 'client' && { folder }) } as const;
await using served = await servePool(Math.max(...LEASES), ['--recordings', folder]);
await using link = DELAY > 0 ? await DelayProxy.to(served.service) : undefined;
if (link) link.roundTrip = DELAY;
const baseUrl = link?.baseUrl ?? served.service.baseUrl;
await using pool = new BrowserPool('bench', { ...served.service, baseUrl });

/** Runs the leases side by side. They begin their actions together. */
async function measure(leases: number, style: string, replays: 'record' | 'off'): Promise<Measured[]> {
  let ready = 0;
  let onReady!: () => void;
  const allReady = new Promise<void>((resolve) => (onReady = resolve));
  const one = async (): Promise<Measured> => {
    const { value, replays: links } = await withPooledBrowser(
      pool,
      async ({ page }) => {
        await page.setContent(html(style));
        await page.fill('#name', 'warm');
        await page.click('#add');
        if (++ready === leases) onReady();
        await allReady;
        return await act(page);
      },
      {
        replays,
        ...(replays === 'record' && { recording: RECORDING }),
        acquireTimeout: 120_000,
        replaysTimeout: 120_000,
      },
    );
    const [replay] = links;
    return { ...value, picturesPerSecond: replay ? await pictures(replay.replay_view_url!) : Number.NaN };
  };
  return await Promise.all(Array.from({ length: leases }, one));
}

async function act(page: Page): Promise<Omit<Measured, 'picturesPerSecond'>> {
  const before = await page.evaluate(() => ({ at: performance.now(), count: globalThis.ticks }));
  const began = performance.now();
  for (let index = 0; index < ACTIONS; index += 2) {
    await page.fill('#name', `Order ${index}`);
    await page.click('#add');
  }
  const ten = ((performance.now() - began) * 10) / ACTIONS;
  await page.waitForTimeout(Math.max(0, LEAST - (performance.now() - began)));
  const after = await page.evaluate(() => ({ at: performance.now(), count: globalThis.ticks }));
  return { ten, framesPerSecond: (1000 * (after.count - before.count)) / (after.at - before.at) };
}

/** The pictures in a video, per second. */
async function pictures(url: string): Promise<number> {
  const video = readFileSync(join(dirname(fileURLToPath(url)), 'video.webm'));
  const input = new Input({ formats: [WEBM], source: new BufferSource(video) });
  const track = await input.getPrimaryVideoTrack();
  const { packetCount } = await track!.computePacketStats();
  return packetCount / (await input.computeDuration());
}

function memory(): number {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${served.pid}/status`, 'utf8'))!;
  return Number(kilobytes) / 1024;
}

const rows: string[][] = [];
const before = memory();
let most = before;
const watch = setInterval(() => (most = Math.max(most, memory())), 200);
for (const [kind, style] of Object.entries(PAGES)) {
  for (const leases of LEASES) {
    const samples = { off: [] as Measured[], record: [] as Measured[] };
    for (let round = -1; round < ROUNDS; round++) {
      const sides = round % 2 === 0 ? (['off', 'record'] as const) : (['record', 'off'] as const);
      for (const side of sides) {
        const measured = await measure(leases, style, side);
        if (round >= 0) samples[side].push(...measured);
      }
    }
    const middle = (side: 'off' | 'record', figure: keyof Measured) =>
      median(samples[side].map((one) => one[figure]));
    const ratio = (figure: keyof Measured) => (middle('record', figure) / middle('off', figure)).toFixed(2);
    rows.push([
      `${leases} ${kind}`,
      `${middle('off', 'ten').toFixed(0)} ms`,
      `${middle('record', 'ten').toFixed(0)} ms`,
      `×${ratio('ten')}`,
      style === '' ? '' : middle('off', 'framesPerSecond').toFixed(1),
      style === '' ? '' : `×${ratio('framesPerSecond')}`,
      middle('record', 'picturesPerSecond').toFixed(1),
    ]);
    console.log(rows.at(-1)!.join('  '));
  }
}
clearInterval(watch);
const head = ['leases', 'ten actions', 'recorded', 'ratio', 'frames/s', 'recorded', 'pictures/s'];
printTable(head, rows);
console.log(`Memory of the pool's process: ${before.toFixed(0)} MB before, ${most.toFixed(0)} MB at most.`);
