import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { runOf } from '../../src/index.js';
import { hang, until } from '../service/support.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS, type AnyLease, type Driver } from '../support/drivers.js';
import { reply, type Answer } from '../support/fake-service.js';
import { FaultBench, useQuiet, type Outcome } from '../support/fault-bench.js';
import { accept, ignore } from '../support/fault-road.js';
import { useLocalPool } from '../support/local.js';

useCollected();
useQuiet();
const used = useLocalPool();

const REASONS = [new Error('mine'), { no: 'error' }, 'a text'];

describe.each(DRIVERS)('$name', (driver) => {
  it("rejects with the signal's reason and sends nothing when the signal is already aborted", async () => {
    for (const reason of REASONS) {
      await using bench = await FaultBench.start();
      const { error } = await bench.run(driver, () => {}, { signal: AbortSignal.abort(reason) });
      expect(error).toBe(reason);
      expect(bench.service.requests).toEqual([]);
    }
  });

  it('releases a browser that is granted after the abort', async () => {
    await using bench = await FaultBench.start();
    let grant: (() => void) | undefined;
    bench.service.script('acquire', (response) => {
      const json = bench.fakeSession();
      grant = () => reply(response, { status: 200, json });
    });
    await abortWhen(bench, driver, () => grant !== undefined);
    expect(bench.released.size).toBe(0);
    grant!();
    await bench.settle();
    expect(bench.service.released).toEqual(['lease-1']);
  });

  it('releases every granted browser, whether the abort comes before or after the grant', async () => {
    let called = 0;
    const seen = new Set<string>();
    // Both orders must occur, or this test proves nothing.
    const isEnough = () => seen.has('acquired') && seen.has('grant-orphaned');
    for (let round = 0; round < 24 || !isEnough(); round++) {
      await using bench = await FaultBench.start();
      const requested = new Promise<void>((resolve) =>
        bench.service.script('acquire', (...request) => {
          setTimeout(() => void (bench.grant as (...args: unknown[]) => unknown)(...request), 8);
          resolve();
        }),
      );
      bench.road.play(ignore);
      const caller = new AbortController();
      const reason = new Error('mine');
      const running = bench.run(driver, () => called++, { signal: caller.signal });
      // Half of the aborts are timed from the request, which a busy machine sends late.
      if (round % 2 === 1) await requested;
      await sleep(round);
      caller.abort(reason);
      const { error, events } = await running;
      expect(error).toBe(reason);
      await bench.settle();
      for (const { type } of events) seen.add(type);
    }
    expect(called).toBe(0);
  });

  it.each([
    ['the upgrade is not answered', ignore],
    ['the browser is silent', accept],
  ])('destroys the browser when the abort comes while %s', async (_what, upgrade) => {
    await using bench = await FaultBench.start();
    bench.road.play(upgrade);
    const { error } = await abortWhen(bench, driver, () => bench.road.dialled === 1);
    await bench.settle();
    await expect.poll(() => runOf(error)).toMatchObject({ released: 'destroyed' });
  });

  it('stops the callback: no command of it reaches the browser after the abort', async () => {
    await using bench = await FaultBench.start(used.local);
    let [failures, isOver] = [0, false];
    let reason: unknown;
    const callback = async ({ page, signal }: AnyLease) => {
      signal.addEventListener('abort', () => (reason = signal.reason), { once: true });
      while (!isOver) {
        await page.evaluate('1').catch(() => failures++);
        await sleep(5);
      }
    };
    const { error } = await abortWhen(bench, driver, () => bench.road.commands > 50, callback);
    expect(reason).toBe(error);
    await bench.settle();
    await expect.poll(() => runOf(error)).toMatchObject({ released: 'destroyed' });
    const [commands, failed] = [bench.road.commands, failures];
    await until(() => failures > failed + 3);
    expect(bench.road.commands).toBe(commands);
    isOver = true;
    await bench.settle();
  });

  it.each<['release' | 'replays', (bench: FaultBench) => Answer[]]>([
    ['release', (bench) => [slow(bench.takeBack, 1500)]],
    ['replays', () => [{ status: 200, json: [] }, hang]],
  ])(
    'rejects with the reason when the abort comes during the %s request, and still releases the browser',
    async (route, answers) => {
      await using bench = await FaultBench.start(used.local);
      bench.service.script(route, ...answers(bench));
      const isThere = () => bench.service.of(route).length === answers(bench).length;
      await abortWhen(bench, driver, isThere, () => 'value');
      await bench.settle();
      expect(bench.released.size).toBe(1);
    },
  );
});

/** Runs, aborts when the condition holds, and checks that the promise rejects with the reason. */
async function abortWhen(
  bench: FaultBench,
  driver: Driver,
  condition: () => boolean,
  callback: (lease: AnyLease) => unknown = () => {},
): Promise<Outcome> {
  const caller = new AbortController();
  const reason = new Error('mine');
  // For the list of replays that never comes.
  const limits = { replaysTimeout: 8000, signal: caller.signal };
  const running = bench.run(driver, callback, limits);
  await until(condition);
  caller.abort(reason);
  const outcome = await running;
  expect(outcome.error).toBe(reason);
  return outcome;
}

function slow(answer: Answer, delay: number): Answer {
  return async (...request) => {
    await sleep(delay);
    await (answer as (...args: unknown[]) => unknown)(...request);
  };
}
