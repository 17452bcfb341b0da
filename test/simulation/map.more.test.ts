import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { describeCampaign, explainFailure, runCampaign } from './campaign.js';

const JOBS = 400;
/** Each run of the tests simulates other worlds. A failure prints the seed that repeats it. */
const FIRST_SEED = randomInt(1_000_000_000);

it(`returns one outcome for every input of ${JOBS} jobs, and releases every lease, whatever fails`, async () => {
  const options = { ways: ['map', 'map', 'run'] } as const;
  const campaign = await runCampaign({ firstSeed: FIRST_SEED, lifecycles: JOBS }, options);
  process.stdout.write(`simulation of jobs from seed ${FIRST_SEED}: ${describeCampaign(campaign)}\n`);
  const [failure] = campaign.failures;
  expect(failure && (await explainFailure(failure.seed, options))).toBeUndefined();
  expect(campaign.granted).toBeGreaterThan(JOBS);
}, 900_000);
