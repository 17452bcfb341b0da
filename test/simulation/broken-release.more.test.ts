import { afterEach, expect, it, vi } from 'vitest';
import { BrowserPool, PoolConnectionError } from '../../src/index.js';
import { Lease } from '../../src/lease/lease.js';
import { explainFailure, runCampaign } from './campaign.js';

// A broken release shows after some thousand lifecycles.
vi.setConfig({ testTimeout: 900_000 });

afterEach(() => vi.restoreAllMocks());

const { release } = BrowserPool.prototype;

/** Replaces `BrowserPool.release`. `send` calls the real one. */
function breakRelease(broken: (send: () => Promise<void>, count: number) => Promise<void> | undefined): void {
  let count = 0;
  vi.spyOn(BrowserPool.prototype, 'release').mockImplementation(async function (this: BrowserPool, ...args) {
    await broken(() => release.apply(this, args), ++count);
  });
}

it('detects that one release in a thousand is not sent', async () => {
  breakRelease((send, count) => (count % 1000 === 0 ? undefined : send()));
  const { failures, lifecycles } = await runCampaign({ firstSeed: 1, lifecycles: 20_000 });
  expect(lifecycles).toBeLessThan(5000);
  expect(failures[0]?.violations.join()).toMatch(/lost s\d+/);
});

it('detects a release that is repeated after its confirmation', async () => {
  breakRelease(async (send, count) => {
    await send();
    if (count % 1000 === 0) await send();
  });
  const { failures } = await runCampaign({ firstSeed: 1, lifecycles: 20_000 });
  expect(failures[0]?.violations.join()).toContain('after its confirmation');
});

it('detects a release that is repeated without an ownership check', async () => {
  breakRelease((send) =>
    send().catch((error: Error) => {
      if (error instanceof PoolConnectionError) return send();
      throw error;
    }),
  );
  const { failures } = await runCampaign({ firstSeed: 1, lifecycles: 20_000 });
  expect(failures[0]?.violations.join()).toMatch(/released s\d+, which is leased to call \d+/);
});

it('detects a browser that is released during its callback, and prints the log of that world', async () => {
  const owned = vi.spyOn(Lease.prototype, 'release').mockResolvedValue('reused');
  const { failures } = await runCampaign({ firstSeed: 1, lifecycles: 1000 });
  expect(owned).toHaveBeenCalled();
  const explanation = await explainFailure(failures[0]!.seed);
  expect(explanation).toContain(`SEED=${failures[0]!.seed} npm run simulate`);
  expect(explanation).toMatch(/service: s\d+ granted to call \d+/);
});
