import { lazy } from '../../shared/lazy.js';
import { declareFeature } from '../declaration.js';
import {
  startPageChecks,
  type OtherStartOptions,
  type StartPageOptions,
  type StartPageSettings,
  type StartPageSteps,
} from './options.js';

export const declared = declareFeature<{
  acquire: StartPageOptions;
  steps: StartPageSteps;
}>()({
  checks: { acquire: startPageChecks },
});

const load = lazy(() => import('./start-page.js'));

/** @internal */
export const create = async ({ startUrl, ...how }: OtherStartOptions & StartPageSettings) =>
  startUrl === undefined ? undefined : new (await load()).StartPage(startUrl, how);
