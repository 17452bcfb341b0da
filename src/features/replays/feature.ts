import type { EndOptions } from '../../lease/options.js';
import { lazy } from '../../shared/lazy.js';
import { declareFeature } from '../declaration.js';
import {
  replaysChecks,
  verifyReplays,
  type ReplaysOptions,
  type ReplaysResult,
  type ReplaysSettings,
  type ReplaysSteps,
  type ReplaysTimes,
} from './options.js';

export const declared = declareFeature<{
  release: ReplaysOptions;
  result: ReplaysResult;
  times: ReplaysTimes;
  steps: ReplaysSteps;
}>()({
  checks: { release: replaysChecks },
  none: () => ({ replays: [], replayStatus: 'off' }),
  verify: verifyReplays,
});

const load = lazy(() => import('./replays.js'));

/** @internal */
export const create = async (settings: ReplaysSettings & Pick<EndOptions, 'signal'>) =>
  settings.replays === 'off' ? undefined : new (await load()).Replays(settings);
