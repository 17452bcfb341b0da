import { lazy } from '../../shared/lazy.js';
import { declareFeature } from '../declaration.js';
import {
  startPageChecks,
  type OtherStartOptions,
  type StartPageOptions,
  type StartPageSettings,
  type StartPageSteps,
} from './options.js';

interface Types {
  acquire: StartPageOptions;
  steps: StartPageSteps;
}

export const declared = declareFeature<Types>()({
  checks: { acquire: startPageChecks },
});

const load = lazy(() => import('./start-page.js'));

/** @internal */
export const create = async ({ startUrl, ...how }: OtherStartOptions & StartPageSettings) =>
  startUrl === undefined ? undefined : new (await load()).StartPage(startUrl, how);
