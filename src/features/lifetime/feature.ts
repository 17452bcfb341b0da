import { lazy } from '../../shared/lazy.js';
import { declareFeature } from '../declaration.js';
import {
  lifetimeChecks,
  verifyLifetime,
  type LifetimeFacts,
  type LifetimeOptions,
  type LifetimeSettings,
  type LifetimeSteps,
} from './options.js';

export const declared = declareFeature<{
  release: LifetimeOptions;
  facts: LifetimeFacts;
  steps: LifetimeSteps;
}>()({
  checks: { release: lifetimeChecks },
  verify: verifyLifetime,
});

const load = lazy(() => import('./lifetime.js'));

/** @internal Also without the option: a lease that another process began may have a lifetime. */
export const create = async (settings: LifetimeSettings) => new (await load()).Lifetime(settings);
