import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chromium } from 'playwright-core';
import { expect, it } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import { startLocalPool, type LocalPoolEvent, type LocalPoolSettings } from '../../src/local.js';
import { memoryOfGroup } from '../../src/local/pool/browser-memory.js';
import { browsersThatFit, memoryOfEach, thisMachine } from '../../src/shared/machine.js';

const GIGABYTE = 1024 ** 3;
const MEGABYTE = 1024 ** 2;

async function open(settings: LocalPoolSettings) {
  const events: LocalPoolEvent[] = [];
  const local = await startLocalPool({ pools: [settings], onLog: (event) => void events.push(event) });
  const pool = new BrowserPool('default', { baseUrl: local.baseUrl, token: local.token });
  const reasons = () => events.flatMap((event) => (event.type === 'browser-destroyed' ? event.reason : []));
  const close = async () => {
    await pool.close();
    await local.close();
  };
  return { pool, reasons, [Symbol.asyncDispose]: close };
}

it('a browser is replaced after maxLeases leases, of which each is still answered as reused', async () => {
  await using used = await open({ maxLeases: 2 });
  const ids: string[] = [];
  for (let count = 0; count < 5; count++) {
    const session = await used.pool.acquire({ acquire_timeout_seconds: 60 });
    ids.push(session!.session_id);
    await used.pool.release(session!.session_id, { reuse: true });
  }
  const [first, , second, , third] = ids;
  expect(ids).toEqual([first, first, second, second, third]);
  expect(new Set(ids).size).toBe(3);
  expect(used.reasons()).toEqual(['replaced', 'replaced']);
});

it.runIf(process.platform === 'linux')(
  'a browser that still holds more memory than its share when it is released is replaced',
  async () => {
    // The share of so many browsers is the least one, 400 MB.
    await using used = await open({ size: 1000, onDemand: true });
    const session = await used.pool.acquire({ acquire_timeout_seconds: 60 });
    const browser = await chromium.connectOverCDP(session!.cdp_ws_url);
    const [page] = browser.contexts()[0]!.pages();
    await page!.evaluate(
      (bytes) => Object.assign(globalThis, { held: new Uint8Array(bytes).fill(1) }),
      500 * MEGABYTE,
    );
    await browser.close();
    await used.pool.release(session!.session_id, { reuse: true });
    await expect.poll(used.reasons, { timeout: 20_000 }).toEqual(['replaced']);
    const next = await used.pool.acquire({ acquire_timeout_seconds: 60 });
    expect(next!.session_id).not.toBe(session!.session_id);
  },
);

it.runIf(process.platform === 'linux')(
  'the memory of a process group has all its processes, and no other',
  async () => {
    const holds = `const held = Buffer.alloc(${100 * MEGABYTE}, 1); console.log(held.length); setInterval(() => held, 1000);`;
    const script = `const { spawn } = require('child_process');
    spawn(process.execPath, ['-e', ${JSON.stringify(holds)}], { stdio: 'inherit' }); ${holds}`;
    const child = spawn(process.execPath, ['-e', script], {
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let printed = '';
    child.stdout.on('data', (text: Buffer) => (printed += String(text)));
    await expect.poll(() => printed.split('\n').length, { timeout: 30_000 }).toBe(3);
    const memory = memoryOfGroup(child.pid!);
    process.kill(-child.pid!, 'SIGKILL');
    await once(child, 'exit');
    expect(memory / MEGABYTE).toBeGreaterThan(200);
    expect(memory / MEGABYTE).toBeLessThan(400);
  },
);

it.each([
  [16, 2, 3],
  [16, 32, 16],
  [2, 7, 2],
  [4, 0.5, 1],
  [1, 64, 1],
])('%i cores and %d GB fit %i browsers', (cores, gigabytes, browsers) => {
  const machine = { cores, memory: gigabytes * GIGABYTE };
  expect(browsersThatFit(machine)).toBe(browsers);
  expect(memoryOfEach(machine, browsers)).toBeLessThanOrEqual(GIGABYTE);
  expect(browsersThatFit(thisMachine())).toBeGreaterThanOrEqual(1);
});
