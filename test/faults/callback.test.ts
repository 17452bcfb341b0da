import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { BrowserLostError, CallbackTimeoutError } from '../../src/index.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS, type AnyLease } from '../support/drivers.js';
import { FaultBench, useQuiet } from '../support/fault-bench.js';
import { useLocalPool } from '../support/local.js';

useCollected();
useQuiet();
const used = useLocalPool();

describe.each(DRIVERS)('$name', (driver) => {
  it("throws the callback's own error, unchanged, even when nothing can be tidied up", async () => {
    for (const isTidy of [true, false]) {
      await using bench = await FaultBench.start(used.local);
      if (!isTidy) {
        bench.service.script('release', { status: 500 });
        bench.service.script('replays', { status: 500 });
      }
      const mine = Object.freeze(new TypeError('mine'));
      const throwMine = () => Promise.reject(mine);
      const { error, run } = await bench.run(driver, throwMine, { releaseTimeout: 300 });
      expect(error).toBe(mine);
      expect(run!.released).toBe(isTidy ? 'reused' : 'failed');
      expect(run!.cleanupErrors.map((cleanup) => (cleanup as BrowserLostError).code)).toEqual(
        isTidy ? [] : ['http_500', 'ERR_RELEASE'],
      );
      await bench.settle(isTidy ? {} : { unreleased: ['lease-1'] });
    }
  });

  it.each([undefined, null, 'a text', 0])('passes on %j when the callback throws it', async (thrown) => {
    await using bench = await FaultBench.start(used.local);
    const { status, error } = await bench.run(driver, () => {
      throw thrown;
    });
    expect({ status, error }).toEqual({ status: 'rejected', error: thrown });
    await bench.settle();
  });

  it('ends a callback that never settles, and nothing of it reaches the browser afterwards', async () => {
    await using bench = await FaultBench.start(used.local);
    const driving = new Driving();
    const { error, run } = await bench.run(driver, driving.forEver, { timeout: 400 });
    expect(error).toBeInstanceOf(CallbackTimeoutError);
    expect(error).toMatchObject({ code: 'ERR_CALLBACK_TIMEOUT', sessionId: 'lease-1' });
    expect(run).toMatchObject({ released: 'destroyed' });
    await driving.expectOver(bench);
    await bench.settle();
  });

  it('hears nothing of a callback that rejects long after the abort', async () => {
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

  it('counts a callback that closed the browser as one that lost it', async () => {
    await using bench = await FaultBench.start(used.local);
    const { error, run } = await bench.run(driver, ({ browser }) => browser.close());
    expect(error).toBeInstanceOf(BrowserLostError);
    expect(error).toMatchObject({ reason: 'closed-by-callback' });
    expect(run).toMatchObject({ released: 'destroyed' });
    await bench.settle();
  });

  it('gives a browser back whose last page the callback closed', async () => {
    await using bench = await FaultBench.start(used.local);
    const { status, run } = await bench.run(driver, ({ page }) => page.close());
    expect(status).toBe('resolved');
    expect(run).toMatchObject({ released: 'reused', cleanupErrors: [] });
    await bench.settle();
  });

  it('takes it well when the callback gives the browser back by itself', async () => {
    await using bench = await FaultBench.start(used.local);
    const outcome = await bench.run(driver, async ({ session }) => {
      await bench.pool.release(session.session_id);
      return 'value';
    });
    // Whether the socket outlives the release is the service's affair: here it is gone.
    if (outcome.status === 'rejected') expect(outcome.error).toBeInstanceOf(BrowserLostError);
    else expect(outcome).toMatchObject({ value: 'value', run: { released: 'destroyed' } });
    expect(bench.service.released).toEqual(['lease-1', 'lease-1']);
    await bench.settle({ isEarly: true });
  });
});

/** A callback that drives its page without end, and without looking at its signal. */
class Driving {
  #calls = 0;
  #failures = 0;
  #isOver = false;

  readonly forEver = async ({ page }: AnyLease): Promise<void> => {
    while (!this.#isOver) {
      this.#calls++;
      await page.evaluate('1').catch(() => this.#failures++);
      await sleep(5);
    }
  };

  /** Once the browser is given back, every call fails, and none is sent: `settle` compares the commands. */
  async expectOver(bench: FaultBench): Promise<void> {
    const [commands, failures] = [bench.road.commands, this.#failures];
    expect(commands).toBeGreaterThan(0);
    await sleep(200);
    this.#isOver = true;
    expect(this.#failures).toBeGreaterThan(failures);
    expect(this.#calls).toBeGreaterThanOrEqual(this.#failures);
    expect(bench.road.commands).toBe(commands);
    await sleep(20);
  }
}
