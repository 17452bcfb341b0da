import { describe, expect, it } from 'vitest';
import { BrowserLostError, CallbackTimeoutError } from '../../src/index.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS, type AnyLease } from '../support/drivers.js';
import { FaultBench, useQuiet } from '../support/fault-bench.js';
import { useLocalPool } from '../support/local.js';

useCollected();
useQuiet();
const used = useLocalPool();

const FINISHED = {
  replay_id: 'replay-1',
  finished_at: '2026-01-02T03:05:05Z',
  replay_view_url: 'https://x/1',
};
const never = () => new Promise<never>(() => {});

describe.each(DRIVERS)('$name, recorded', (driver) => {
  const record = async (
    fn: (lease: AnyLease, bench: FaultBench) => unknown,
    options: Parameters<FaultBench['run']>[2] = {},
  ) => {
    await using bench = await FaultBench.start(used.local);
    bench.service.script('replays', { status: 200, json: [] }, { status: 200, json: [FINISHED] });
    const outcome = await bench.run(driver, (lease) => fn(lease, bench), { replays: 'record', ...options });
    await bench.settle();
    const asked = bench.service.requests.map(({ path }) => path.split('/').at(-1));
    expect(asked.indexOf('stop')).toBeLessThan(asked.indexOf('release'));
    expect(asked.filter((path) => path === 'stop')).toHaveLength(1);
    return outcome;
  };

  it('returns the value and the replay', async () => {
    const { value, run } = await record(({ page }) => page.evaluate('1'));
    expect(value).toBe(1);
    expect(run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready', released: 'reused' });
  });

  it("rejects with the callback's error; its run has the replay", async () => {
    const mine = new Error('mine');
    const { error, run } = await record(() => Promise.reject(mine));
    expect(error).toBe(mine);
    expect(run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready', released: 'reused' });
  });

  it('has the replay of a browser that was lost, and of a callback that timed out', async () => {
    const lost = await record((_lease, bench) => {
      bench.road.lose('reset');
      return never();
    });
    expect(lost.error).toBeInstanceOf(BrowserLostError);
    expect(lost.run).toMatchObject({ replays: [FINISHED], released: 'destroyed' });
    const late = await record(never, { timeout: 100 });
    expect(late.error).toBeInstanceOf(CallbackTimeoutError);
    expect(late.run).toMatchObject({ replays: [FINISHED], released: 'destroyed' });
  });

  it('rejects with the reason of an abort in the callback, and destroys the browser', async () => {
    const caller = new AbortController();
    const reason = { my: 'reason' };
    const callback = async ({ page }: AnyLease) => {
      caller.abort(reason);
      for (;;) await page.evaluate('1');
    };
    const { error, run } = await record(callback, { signal: caller.signal });
    expect(error).toBe(reason);
    expect(run?.released ?? 'destroyed').toBe('destroyed');
  });
});
