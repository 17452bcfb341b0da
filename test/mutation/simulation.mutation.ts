import { expect, it } from 'vitest';
import { runCampaign } from '../simulation/campaign.js';

it('releases or reports every lease of 1,000 simulated calls, whatever fails', async () => {
  const { failures, granted } = await runCampaign({ firstSeed: 1, lifecycles: 1000 });
  expect(failures).toEqual([]);
  expect(granted).toBeGreaterThan(500);
});
