import { declareFeature } from '../declaration.js';
import { startPageChecks, type StartPageOptions, type StartPageSteps } from './options.js';

interface Types {
  acquire: StartPageOptions;
  steps: StartPageSteps;
}

export const declared = declareFeature<Types>()({
  checks: { acquire: startPageChecks },
});

/** @internal */
export const load = async () => (await import('./start-page.js')).StartPage;
