import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { BrowserLostError, CallbackTimeoutError, ConnectError, runOf } from '../../src/index.js';
import type { LocalPoolEvent } from '../../src/local.js';
import { until } from '../support/played-browser.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS, type AnyLease } from '../support/drivers.js';
import { reply } from '../support/fake-service.js';
import { FaultBench, useQuiet } from '../support/fault-bench.js';
import {
  accept,
  acceptWith,
  answerWith,
  ignore,
  refuse,
  resetUpgrade,
  textFrame,
  type Upgrade,
} from '../support/fault-road.js';
import { titled, useLocalPool } from '../support/local.js';

const events: LocalPoolEvent[] = [];

useCollected();
useQuiet();
const used = useLocalPool({ onLog: (event) => events.push(event) });

const WRONG_KEY =
  'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: wrong\r\n\r\n';
const TIMED_OUT = { message: expect.stringContaining('option connectTimeout') as string };

const UPGRADES: [string, Upgrade, { status?: number; message?: string }][] = [
  ...[401, 403, 404, 500].map((status): [string, Upgrade, object] => [
    `a ${status}`,
    refuse(status),
    { status },
  ]),
  ['a redirect', refuse(302, { location: '/elsewhere' }), { status: 302 }],
  ['a 200', answerWith('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'), { status: 200 }],
  ['no answer', ignore, TIMED_OUT],
  ['a reset', resetUpgrade, {}],
  ['no HTTP', answerWith('SSH-2.0-no-http\r\n'), {}],
  ['a 101 with a wrong key', answerWith(WRONG_KEY), {}],
  ['a 101, then silence', accept, TIMED_OUT],
  ['a 101, then bytes that are no frame', acceptWith(Buffer.alloc(64, 0xff)), {}],
  ['a 101, then a message that is no JSON', acceptWith(textFrame('<html>no JSON')), {}],
  ['a 101, then JSON that is no message', acceptWith(textFrame('[1, null]')), {}],
  ['a 101, then null', acceptWith(textFrame('null')), {}],
];

describe.each(DRIVERS)('$name', (driver) => {
  it.each(UPGRADES)(
    'destroys the browser after %s to the WebSocket upgrade',
    async (_what, upgrade, facts) => {
      await using bench = await FaultBench.start();
      bench.road.play(upgrade);
      let calls = 0;
      // Without a status, some libraries wait until the timeout.
      const limits = facts.status === undefined ? { connectTimeout: 700 } : {};
      const { error, run } = await bench.run(driver, () => calls++, { ...limits, within: 700 });
      expect(error).toBeInstanceOf(ConnectError);
      expect(error).toMatchObject({ code: 'ERR_CONNECT', sessionId: 'lease-1', ...facts });
      expect(error!.cause).toBeInstanceOf(Error);
      const session = { session_id: 'lease-1' };
      expect(run).toMatchObject({ released: 'destroyed', acquireAttempts: 1, session });
      expect(bench.service.of('release')).toMatchObject([{ body: { ...session, reuse: false } }]);
      expect(calls).toBe(0);
      if (facts.status !== undefined) expect(bench.road.dialled).toBe(1);
      await bench.settle();
    },
  );

  it.each([
    ['the upgrade is not answered', ignore],
    ['the browser is silent', accept],
  ])('destroys the browser when the abort comes while %s', async (_what, upgrade) => {
    await using bench = await FaultBench.start();
    bench.road.play(upgrade);
    const caller = new AbortController();
    const running = bench.run(driver, () => {}, { signal: caller.signal });
    await until(() => bench.road.dialled === 1);
    caller.abort(new Error('mine'));
    const { error } = await running;
    expect(error).toBe(caller.signal.reason);
    await bench.settle();
    await expect.poll(() => runOf(error)).toMatchObject({ released: 'destroyed' });
  });

  it.each(['timeout', 'abort'])(
    'stops a callback that never settles: no command of it reaches the browser after the %s',
    async (how) => {
      await using bench = await FaultBench.start(used.local);
      const caller = new AbortController();
      let [failures, isOver] = [0, false];
      let reason: unknown;
      const callback = async ({ page, signal }: AnyLease) => {
        signal.addEventListener('abort', () => (reason = signal.reason));
        while (!isOver) {
          await page.evaluate('1').catch(() => failures++);
          if (how === 'abort' && bench.road.commands > 50) caller.abort(new Error('mine'));
          await sleep(5);
        }
      };
      const options = how === 'timeout' ? { timeout: 400 } : { signal: caller.signal };
      const { error } = await bench.run(driver, callback, options);
      expect(reason).toBe(error);
      if (how === 'abort') expect(error).toBe(caller.signal.reason);
      else expect(error).toBeInstanceOf(CallbackTimeoutError);
      await bench.settle();
      await expect.poll(() => runOf(error)).toMatchObject({ released: 'destroyed' });
      const [commands, failed] = [bench.road.commands, failures];
      expect(commands).toBeGreaterThan(0);
      // Every later call fails before it is sent.
      await until(() => failures > failed + 3);
      expect(bench.road.commands).toBe(commands);
      isOver = true;
    },
  );

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
});

it('connects to a browser with fifty pages, and closes none of them', async () => {
  await using first = await FaultBench.start(used.local);
  const { cdp_ws_url, webdriver_ws_url } = await first.lend();
  // Stays connected, so that the session does not expire between two clients.
  const observer = await chromium.connectOverCDP(String(cdp_ws_url));
  const session = await observer.newBrowserCDPSession();
  const pages = async () => {
    const { targetInfos } = await session.send('Target.getTargets');
    return targetInfos.flatMap(({ targetId, type }) => (type === 'page' ? targetId : []));
  };
  const open = () => session.send('Target.createTarget', { url: 'about:blank' });
  await Promise.all(Array.from({ length: 49 }, open));
  const opened = await pages();
  expect(opened).toHaveLength(50);
  let unresponsive = 0;
  for (const driver of DRIVERS) {
    await using bench = await FaultBench.start();
    bench.service.script('acquire', (response) =>
      reply(response, { status: 200, json: bench.fakeSession({ cdp_ws_url, webdriver_ws_url }) }),
    );
    const outcome = await bench.run(
      driver,
      async ({ page }) => {
        await page.goto(titled('one of fifty'));
        return page.title();
      },
      { release: 'reuse' },
    );
    expect(outcome).toMatchObject({ value: 'one of fifty', run: { released: 'reused' } });
    await bench.settle();
    // On a very busy machine, a connect is slow, and closes and reports the pages that do not answer within 2 s.
    for (const event of outcome.events)
      if (event.type === 'unresponsive-pages-closed') unresponsive += event.urls.length;
    const left = async () => (await pages()).filter((page) => opened.includes(page));
    await expect.poll(left).toHaveLength(50 - unresponsive);
  }
  await observer.close();
  first.destroys = true;
}, 180_000);

function lastPid(): number {
  const started = events.findLast((event) => event.type === 'browser-started');
  return started?.type === 'browser-started' ? started.pid : Number.NaN;
}
