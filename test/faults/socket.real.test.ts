import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { BrowserLostError, ConnectError } from '../../src/index.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS, type AnyLease, type Driver } from '../support/drivers.js';
import { FaultBench, useQuiet, type Outcome } from '../support/fault-bench.js';
import { textFrame, type FaultRoad } from '../support/fault-road.js';
import { useLocalPool } from '../support/local.js';

useCollected();
useQuiet();
const used = useLocalPool({ pools: [{ name: 'test', size: 3 }] });

/** Milliseconds between two pings. */
const BEAT = 2500;

const LOSSES: [string, (road: FaultRoad) => void, string][] = [
  ['is reset', (road) => road.lose('reset'), 'dropped'],
  ['ends without a close frame', (road) => road.lose('end'), 'dropped'],
  ['is closed with 1001', (road) => road.close(1001, 'going away'), 'closed-by-service'],
  ['is closed with 1000', (road) => road.close(1000), 'closed-by-service'],
  ['is closed as expired', (road) => road.close(1001, 'session expired'), 'expired'],
  ['carries bytes that are no frame', (road) => road.inject(Buffer.alloc(64, 0xff)), 'dropped'],
];

describe.each(DRIVERS)('$name', (driver) => {
  it.each(LOSSES)('rejects when the WebSocket %s in the callback', async (_how, lose, reason) => {
    await using bench = await FaultBench.start(used.local);
    await loseInCallback(bench, driver, { lose, reason });
    await bench.settle();
  });

  it.each(['no JSON', '[]', 'null', '{"id":', '{"method":"no.such.event"}'])(
    'rejects with BrowserLostError after the message %s',
    async (text) => {
      await using bench = await FaultBench.start(used.local);
      const outcome = await bench.run(driver, async ({ signal }) => {
        bench.road.inject(textFrame(text));
        await Promise.race([aborted(signal), sleep(300)]);
        // Some libraries close the connection after such a message. For the others, the test resets it.
        bench.road.lose('reset');
        await aborted(signal);
      });
      expect(outcome.error).toBeInstanceOf(BrowserLostError);
      expect(outcome.run).toMatchObject({ released: 'destroyed' });
      await bench.settle();
    },
  );

  it('rejects in time if the WebSocket drops at any message of the connect', async () => {
    const seen = new Set<unknown>();
    for (const last of [1, 2, 3, 5, 8, 13, 21, 34, 55]) {
      await using bench = await FaultBench.start(used.local);
      bench.road.onMessage = (count) => void (count === last && bench.road.lose(count % 2 ? 'reset' : 'end'));
      const { error } = await bench.run(driver, async ({ page, signal }) => {
        for (let call = 0; !signal.aborted && call < 60; call++) await page.evaluate('1');
      });
      seen.add(error?.constructor);
      expect(bench.service.released).toEqual(['lease-1']);
      await bench.settle();
    }
    // Both must happen, or this test proves nothing.
    expect(seen).toEqual(new Set([ConnectError, BrowserLostError]));
  });
});

it('detects a silent WebSocket within 15 s, and does not count an empty result as success', async () => {
  await withEachDriver(async (driver, bench) => {
    const lose = (road: FaultRoad) => road.lose('silence');
    const beats = await loseInCallback(bench, driver, { lose, reason: 'dropped' });
    // The last beat may come before the abort, in the same iteration of the event loop.
    expect(beats).toBeLessThanOrEqual(15_000 / BEAT);
  });
});

it('rejects at connectTimeout when the WebSocket goes silent during the connect', async () => {
  await withEachDriver(async (driver, bench) => {
    bench.road.onMessage = () => bench.road.lose('silence');
    const { error } = await bench.run(driver, () => {}, { connectTimeout: 1500, within: 1500 });
    expect(error).toBeInstanceOf(ConnectError);
    expect(error!.message).toContain('option connectTimeout');
  });
});

/** Waits for the same silence in all drivers at the same time. */
async function withEachDriver(play: (driver: Driver, bench: FaultBench) => Promise<void>): Promise<void> {
  const plays = DRIVERS.map(async (driver) => {
    await using bench = await FaultBench.start(used.local);
    await play(driver, bench);
    await bench.settle();
  });
  await Promise.all(plays);
}

/**
 * Breaks the connection during calls of the callback, which returns a value whatever their outcome. Returns the number
 * of beats until the signal of the callback aborted: a busy event loop delays them as much as the library's pings.
 */
async function loseInCallback(
  bench: FaultBench,
  driver: Driver,
  { lose, reason }: { lose: (road: FaultRoad) => void; reason: string },
): Promise<number> {
  let abortReason: unknown;
  let beats = 0;
  const callback = async ({ page, signal }: AnyLease) => {
    await page.evaluate('1');
    const beating = setInterval(() => beats++, BEAT);
    lose(bench.road);
    const noting = aborted(signal).then(() => {
      clearInterval(beating);
      abortReason = signal.reason;
    });
    // Some libraries resolve it with `undefined` after their socket has ended.
    const title = await Promise.race([page.title().catch(() => 'failed'), noting]);
    await noting;
    return title ?? 'a value';
  };
  const { status, error, run, events }: Outcome = await bench.run(driver, callback);
  expect(status).toBe('rejected');
  expect(error).toBeInstanceOf(BrowserLostError);
  expect(error).toMatchObject({ code: 'ERR_BROWSER_LOST', reason, sessionId: 'lease-1' });
  expect(abortReason).toBe(error);
  expect(run).toMatchObject({ released: 'destroyed' });
  expect(events.filter(({ type }) => type === 'browser-lost')).toMatchObject([{ error }]);
  return beats;
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}
