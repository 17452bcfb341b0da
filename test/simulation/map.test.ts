import { expect, it } from 'vitest';
import { describeCampaign, explainFailure, runCampaign } from './campaign.js';

const JOBS = 400;

it(`returns one outcome for every input of ${JOBS} jobs, and releases every lease, whatever fails`, async () => {
  const options = { ways: ['map', 'map', 'run'] } as const;
  const campaign = await runCampaign({ firstSeed: 1, lifecycles: JOBS }, options);
  process.stdout.write(`simulation of jobs: ${describeCampaign(campaign)}\n`);
  const [failure] = campaign.failures;
  expect(failure && (await explainFailure(failure.seed, options))).toBeUndefined();
  expect(campaign.granted).toBeGreaterThan(JOBS);
}, 180_000);
