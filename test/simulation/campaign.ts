import { FAULTS, type Fault } from './faults.js';
import { NO_FIGURES, simulate, type Figures, type SimulationOptions, type Verdict } from './simulate.js';
import { realNow } from './virtual-clock.js';

export interface Campaign extends Figures {
  worlds: number;
  seconds: number;
  failures: { seed: number; violations: readonly string[] }[];
}

/** Runs one world after another until the given number of calls or failures. */
export async function runCampaign(
  {
    firstSeed,
    lifecycles,
    mostFailures = 1,
  }: { firstSeed: number; lifecycles: number; mostFailures?: number },
  options: SimulationOptions & { onProgress?: (campaign: Campaign) => void } = {},
): Promise<Campaign> {
  const campaign: Campaign = { worlds: 0, ...NO_FIGURES, seconds: 0, failures: [] };
  const began = realNow();
  for (let seed = firstSeed; campaign.lifecycles < lifecycles; seed++) {
    const verdict = await simulate(seed, options);
    add(campaign, verdict);
    campaign.seconds = (realNow() - began) / 1000;
    options.onProgress?.(campaign);
    if (campaign.failures.length >= mostFailures) break;
  }
  return campaign;
}

/** One line of figures. */
export function describeCampaign(campaign: Campaign): string {
  const { seconds, failures, ...counts } = campaign;
  const rate = Math.round(campaign.lifecycles / seconds);
  const row = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
  return `${row.join(', ')}; ${failures.length} worlds broke a rule; ${seconds.toFixed(1)} s, ${rate} lifecycles a second`;
}

/** Runs a failing world again with only the faults that it needs to break the same rule. */
async function shrink(seed: number, broken: readonly string[], options: SimulationOptions): Promise<Verdict> {
  const without = new Set<Fault>();
  const rules = new Set(broken.map(ruleOf));
  for (const fault of FAULTS) {
    without.add(fault);
    const { violations } = await simulate(seed, { ...options, without });
    if (!violations.some((violation) => rules.has(ruleOf(violation)))) without.delete(fault);
  }
  return simulate(seed, { ...options, without, story: true });
}

function ruleOf(violation: string): string {
  return violation.replaceAll(/\d+/g, '');
}

/** Describes a failure: the broken rules, the command that repeats it, and its log with the fewest faults. */
export async function explainFailure(seed: number, options: SimulationOptions = {}): Promise<string> {
  const { violations } = await simulate(seed, options);
  const { story } = await shrink(seed, violations, options);
  const ways = options.ways ? `WAYS=${options.ways.join()} ` : '';
  return [
    `Seed ${seed}:`,
    ...violations,
    `Repeat it: ${ways}SEED=${seed} npm run simulate`,
    'With the fewest faults:',
    ...story,
  ].join('\n');
}

function add(campaign: Campaign, verdict: Verdict): void {
  const { seed, violations } = verdict;
  campaign.worlds++;
  for (const name of Object.keys(NO_FIGURES) as (keyof Figures)[]) campaign[name] += verdict[name];
  if (violations.length > 0) campaign.failures.push({ seed, violations });
}
