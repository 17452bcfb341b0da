import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { BrowserLostError, CallbackTimeoutError } from '../../src/index.js';
import { until } from '../service/support.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS, type AnyLease } from '../support/drivers.js';
import { FaultBench, useQuiet } from '../support/fault-bench.js';
import { useLocalPool } from '../support/local.js';

useCollected();
useQuiet();
const used = useLocalPool();

describe.each(DRIVERS)('$name', (driver) => {
  it("rejects with the callback's own error, unchanged, even when the cleanup fails", async () => {
    for (const isCleanedUp of [true, false]) {
      await using bench = await FaultBench.start(used.local);
      if (!isCleanedUp) {
        bench.service.script('release', { status: 400 });
        bench.service.script('replays', { status: 500 });
      }
      const mine = Object.freeze(new TypeError('mine'));
      const throwMine = () => Promise.reject(mine);
      const { error, run } = await bench.run(driver, throwMine);
      expect(error).toBe(mine);
      expect(run!.released).toBe(isCleanedUp ? 'reused' : 'failed');
      expect(run!.cleanupErrors.map((cleanup) => (cleanup as BrowserLostError).code)).toEqual(
        isCleanedUp ? [] : ['http_500', 'ERR_RELEASE'],
      );
      await bench.settle(isCleanedUp ? {} : { unreleased: ['lease-1'] });
    }
  });

  it.each([undefined, null, 'a text', 0])('rejects with %j when the callback throws it', async (thrown) => {
    await using bench = await FaultBench.start(used.local);
    const { status, error } = await bench.run(driver, () => {
      throw thrown;
    });
    expect({ status, error }).toEqual({ status: 'rejected', error: thrown });
    await bench.settle();
  });

  it('stops a callback that never settles: no command of it reaches the browser after the timeout', async () => {
    await using bench = await FaultBench.start(used.local);
    const driving = new Driving();
    const { error, run } = await bench.run(driver, driving.forEver, { timeout: 400 });
    expect(error).toBeInstanceOf(CallbackTimeoutError);
    expect(error).toMatchObject({ code: 'ERR_CALLBACK_TIMEOUT', sessionId: 'lease-1' });
    expect(run).toMatchObject({ released: 'destroyed' });
    await driving.expectOver(bench);
    await bench.settle();
  });

  it('ignores a callback that rejects long after the abort', async () => {
    await using bench = await FaultBench.start(used.local);
    const caller = new AbortController();
    const reason = new Error('stop');
    let rejected = false;
    const callback = async () => {
      caller.abort(reason);
      await sleep(500);
      rejected = true;
      throw new Error('too late');
    };
    const { error } = await bench.run(driver, callback, { signal: caller.signal });
    expect(error).toBe(reason);
    await expect.poll(() => rejected).toBe(true);
    await bench.settle();
  });

  it('rejects with BrowserLostError when the callback closes the browser', async () => {
    await using bench = await FaultBench.start(used.local);
    const { error, run } = await bench.run(driver, ({ browser }) => browser.close());
    expect(error).toBeInstanceOf(BrowserLostError);
    expect(error).toMatchObject({ reason: 'closed-by-callback' });
    expect(run).toMatchObject({ released: 'destroyed' });
    await bench.settle();
  });

  it('reuses a browser after the callback has closed its last page', async () => {
    await using bench = await FaultBench.start(used.local);
    const { status, run } = await bench.run(driver, ({ page }) => page.close());
    expect(status).toBe('resolved');
    expect(run).toMatchObject({ released: 'reused', cleanupErrors: [] });
    await bench.settle();
  });

  it('accepts that the callback releases the browser itself', async () => {
    await using bench = await FaultBench.start(used.local);
    const outcome = await bench.run(driver, async ({ session }) => {
      await bench.pool.release(session.session_id);
      return 'value';
    });
    // The local pool closes the WebSocket at the release; another service may keep it open.
    if (outcome.status === 'rejected') expect(outcome.error).toBeInstanceOf(BrowserLostError);
    else expect(outcome).toMatchObject({ value: 'value', run: { released: 'destroyed' } });
    expect(bench.service.released).toEqual(['lease-1', 'lease-1']);
    await bench.settle({ isEarly: true });
  });
});

/** A callback that uses its page forever and ignores its signal. */
class Driving {
  #failures = 0;
  #isOver = false;

  readonly forEver = async ({ page }: AnyLease): Promise<void> => {
    while (!this.#isOver) {
      await page.evaluate('1').catch(() => this.#failures++);
      await sleep(5);
    }
  };

  /** After the release, every call fails before it is sent. */
  async expectOver(bench: FaultBench): Promise<void> {
    const [commands, failures] = [bench.road.commands, this.#failures];
    expect(commands).toBeGreaterThan(0);
    await until(() => this.#failures > failures + 3);
    this.#isOver = true;
    expect(bench.road.commands).toBe(commands);
    await sleep(20);
  }
}
