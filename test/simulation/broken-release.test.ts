import { afterEach, expect, it, vi } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import { OwnedSession } from '../../src/lease/owned-session.js';
import { explainFailure, runCampaign } from './campaign.js';

afterEach(() => vi.restoreAllMocks());

const { release } = BrowserPool.prototype;

it('notices a release in a thousand that is not sent', async () => {
  let count = 0;
  vi.spyOn(BrowserPool.prototype, 'release').mockImplementation(async function (
    this: BrowserPool,
    ...parameters
  ) {
    if (++count % 1000 !== 0) await release.apply(this, parameters);
  });
  const { failures, lifecycles } = await runCampaign({ firstSeed: 1, lifecycles: 20_000 });
  expect(lifecycles).toBeLessThan(5000);
  expect(failures[0]?.violations.join()).toMatch(/lost s\d+/);
});

it('notices a release that is sent again after it was confirmed', async () => {
  let count = 0;
  vi.spyOn(BrowserPool.prototype, 'release').mockImplementation(async function (
    this: BrowserPool,
    ...parameters
  ) {
    await release.apply(this, parameters);
    if (++count % 1000 === 0) await release.apply(this, parameters);
  });
  const { failures } = await runCampaign({ firstSeed: 1, lifecycles: 20_000 });
  expect(failures[0]?.violations.join()).toContain('though it was confirmed');
});

it('notices a browser that is given back while its callback still has it, and shows how it came about', async () => {
  const owned = vi.spyOn(OwnedSession.prototype, 'release').mockResolvedValue('reused');
  const { failures } = await runCampaign({ firstSeed: 1, lifecycles: 1000 });
  expect(owned).toHaveBeenCalled();
  const explanation = await explainFailure(failures[0]!.seed);
  expect(explanation).toContain(`SEED=${failures[0]!.seed} npm run simulate`);
  expect(explanation).toMatch(/service: s\d+ granted to call \d+/);
});
