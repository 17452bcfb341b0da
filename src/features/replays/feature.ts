import { declareFeature } from '../declaration.js';
import {
  replaysChecks,
  verifyReplays,
  type ReplaysOptions,
  type ReplaysResult,
  type ReplaysSteps,
  type ReplaysTimes,
} from './options.js';

interface Types {
  release: ReplaysOptions;
  result: ReplaysResult;
  times: ReplaysTimes;
  steps: ReplaysSteps;
}

export const declared = declareFeature<Types>()({
  checks: { release: replaysChecks },
  verify: verifyReplays,
});

/** @internal */
export const load = async () => (await import('./replays.js')).Replays;
