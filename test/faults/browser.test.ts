import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { BrowserLostError, ConnectError } from '../../src/index.js';
import type { LocalPoolEvent } from '../../src/local.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS } from '../support/drivers.js';
import { FaultBench, useQuiet } from '../support/fault-bench.js';
import { titled, useLocalPool } from '../support/local.js';

const events: LocalPoolEvent[] = [];

useCollected();
useQuiet();
const used = useLocalPool({ onLog: (event) => events.push(event) });

describe.each(DRIVERS)('$name', (driver) => {
  it('rejects when Chromium is killed, whatever the callback returns', async () => {
    await using bench = await FaultBench.start(used.local);
    bench.destroys = true;
    const { error, run } = await bench.run(driver, async ({ page, signal }) => {
      const ended = new Promise((resolve) => signal.addEventListener('abort', resolve));
      process.kill(lastPid(), 'SIGKILL');
      await page.title().catch(() => {});
      await ended;
      expect(signal.reason).toBeInstanceOf(BrowserLostError);
      return 'value';
    });
    expect(error).toBeInstanceOf(BrowserLostError);
    expect(['dropped', 'closed-by-service']).toContain(error!['reason']);
    expect(run).toMatchObject({ released: 'destroyed' });
    await bench.settle();
  });

  it('destroys a browser that dies while connecting, and leases another', async () => {
    await using bench = await FaultBench.start(used.local);
    bench.destroys = true;
    bench.road.onMessage = (count) => void (count === 1 && process.kill(lastPid(), 'SIGKILL'));
    const outcome = await bench.run(driver, () => 'value', { connectAttempts: 2 });
    // Puppeteer may connect before the browser dies; then the browser is lost during the callback or not at all.
    if (outcome.status === 'rejected')
      expect([BrowserLostError, ConnectError].some((type) => outcome.error instanceof type)).toBe(true);
    else expect(outcome.run?.released).toMatch(/reused|destroyed/);
    await bench.settle();
  });
});

it('connects to a browser with fifty pages, and closes none of them', async () => {
  await using first = await FaultBench.start(used.local);
  const lent = await first.lend();
  await openPages(String(lent['cdp_ws_url']), 49);
  for (const driver of DRIVERS) {
    await using bench = await FaultBench.start();
    bench.service.script('acquire', (response) => {
      const { cdp_ws_url, webdriver_ws_url } = lent;
      const json = bench.fakeSession({ cdp_ws_url, webdriver_ws_url });
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(json));
    });
    const outcome = await bench.run(driver, async ({ page }) => {
      await page.goto(titled('one of fifty'));
      return page.title();
    });
    expect(outcome).toMatchObject({ value: 'one of fifty', run: { released: 'reused' } });
    await bench.settle();
  }
  first.destroys = true;
});

async function openPages(url: string, count: number): Promise<void> {
  const socket = new WebSocket(url);
  await new Promise((resolve) => socket.once('open', resolve));
  let answers = 0;
  const opened = new Promise<void>((resolve) =>
    socket.on('message', (text) => {
      if ('id' in JSON.parse(String(text)) && ++answers === count) resolve();
    }),
  );
  for (let id = 1; id <= count; id++)
    socket.send(JSON.stringify({ id, method: 'Target.createTarget', params: { url: 'about:blank' } }));
  await opened;
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.close();
  await closed;
}

function lastPid(): number {
  const started = events.findLast((event) => event.type === 'browser-started');
  return started?.type === 'browser-started' ? started.pid : Number.NaN;
}
