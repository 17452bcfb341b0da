/**
 * `npm run simulate`: a million lifecycles under a simulated clock, network and chance, then the ends of real
 * processes. LIFECYCLES and FIRST_SEED set their number and the first seed; `SEED=…` repeats one world and prints its
 * log, of a world with given callers with their WAYS.
 */
import { describeCampaign, explainFailure, runCampaign } from '../simulation/campaign.js';
import type { Way } from '../simulation/caller.js';
import { simulate } from '../simulation/simulate.js';

const { SEED, WAYS, LIFECYCLES = '1000000', FIRST_SEED = '1' } = process.env;
const PROGRESS = 50_000;

process.exitCode = SEED === undefined ? await runAll() : await replay(Number(SEED));

async function runAll(): Promise<number> {
  let next = PROGRESS;
  const campaign = await runCampaign(
    { firstSeed: Number(FIRST_SEED), lifecycles: Number(LIFECYCLES) },
    {
      onProgress: (sofar) => {
        if (sofar.lifecycles < next) return;
        next += PROGRESS;
        console.log(describeCampaign(sofar));
      },
    },
  );
  console.log(`\n${describeCampaign(campaign)}`);
  const [failure] = campaign.failures;
  if (failure) console.error(await explainFailure(failure.seed));
  return failure ? 1 : 0;
}

async function replay(seed: number): Promise<number> {
  const { story, violations, ...figures } = await simulate(seed, {
    story: true,
    ...(WAYS && { ways: WAYS.split(',') as Way[] }),
  });
  console.log(story.join('\n'));
  console.log(figures);
  console.error(violations.join('\n'));
  return violations.length > 0 ? 1 : 0;
}
