/**
 * `npm run bench:local-pool`: what the local pool itself costs: a warm acquire, the start, the fill, a CDP message and a
 * large screenshot through it against Chromium's own port, and 20 browsers at once. ROUNDS (default 100) sets how often.
 */
import { request } from 'undici';
import { startLocalPool, type LocalPool } from '../../src/local.js';
import { launchChromium } from '../../src/local/browser/chromium.js';
import { findBrowser } from '../../src/local/browser/find-browser.js';
import { realSession } from '../support/real-session.js';
import { CdpPage } from './cdp-page.js';
import { median, percentile, printTable } from './figures.js';

const ROUNDS = Number(process.env['ROUNDS'] ?? 100);
const MEGABYTES = 5;

const rows: string[][] = [];
await measureStart();
await measureAcquire();
await measureMessages();
await measureMany();
printTable(['local pool', 'figure'], rows);
process.exit();

async function measureStart(): Promise<void> {
  const first: number[] = [];
  const filled: number[] = [];
  for (let round = 0; round < 5; round++) {
    const began = performance.now();
    await using local = await startLocalPool({ pools: [{ name: 'bench', size: 4 }] });
    await realSession(local);
    first.push(performance.now() - began);
    while (local.stats().idle < 3) await new Promise((resolve) => setTimeout(resolve, 5));
    filled.push(performance.now() - began);
  }
  rows.push(['from start to the first lease', `${median(first).toFixed(0)} ms`]);
  rows.push(['from start to 4 browsers', `${median(filled).toFixed(0)} ms`]);
}

async function measureAcquire(): Promise<void> {
  await using local = await startLocalPool({ pools: [{ name: 'bench' }] });
  const times: number[] = [];
  for (let round = -10; round < ROUNDS; round++) {
    const began = performance.now();
    const session = await post(local, 'acquire', { acquire_timeout_seconds: 10 });
    if (round >= 0) times.push(performance.now() - began);
    await post(local, 'release', { session_id: session['session_id'] });
  }
  rows.push([
    'a warm acquire, p50 and p95',
    `${median(times).toFixed(2)}, ${percentile(times, 95).toFixed(2)} ms`,
  ]);
}

async function measureMessages(): Promise<void> {
  await using local = await startLocalPool({ pools: [{ name: 'bench' }] });
  const executablePath = await findBrowser({});
  const chromium = await launchChromium(
    { executablePath, args: [], headless: true, viewport: undefined },
    AbortSignal.timeout(30_000),
  );
  const through = await CdpPage.open(String((await realSession(local))['cdp_ws_url']));
  const own = await CdpPage.open(`ws://127.0.0.1:${chromium.port}${chromium.path}`);
  for (const [what, rounds, script] of [
    ['a CDP message', ROUNDS * 5, '1'],
    [`a message of ${MEGABYTES} MB`, 20, `'x'.repeat(${MEGABYTES * 1024 * 1024})`],
  ] as const) {
    const times: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      for (const [index, cdp] of (round % 2 === 0 ? [through, own] : [own, through]).entries()) {
        const began = performance.now();
        await cdp.evaluate(script);
        times[round % 2 === 0 ? index : 1 - index]!.push(performance.now() - began);
      }
    }
    const [ours, theirs] = times.map(median) as [number, number];
    rows.push([`${what}, over Chromium's own port`, `${(ours / theirs).toFixed(2)} (${ours.toFixed(2)} ms)`]);
  }
  through.close();
  own.close();
  await chromium.kill();
}

async function measureMany(): Promise<void> {
  const began = performance.now();
  await using local = await startLocalPool({ pools: [{ name: 'bench', size: 20 }] });
  const sessions = await Promise.all(
    Array.from({ length: 20 }, () => post(local, 'acquire', { acquire_timeout_seconds: 120 })),
  );
  const browsers = await Promise.all(sessions.map(({ cdp_ws_url }) => CdpPage.open(String(cdp_ws_url))));
  await Promise.all(browsers.map((cdp) => cdp.evaluate('1')));
  rows.push([
    '20 browsers, started, leased and answering',
    `${((performance.now() - began) / 1000).toFixed(1)} s`,
  ]);
  for (const cdp of browsers) cdp.close();
}

async function post(local: LocalPool, call: string, body: object): Promise<Record<string, unknown>> {
  const response = await request(`${local.baseUrl}/browser_pools/bench/${call}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${local.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.body.text();
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}
