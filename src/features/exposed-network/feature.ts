import { declareFeature } from '../declaration.js';
import { exposeNetworkChecks, type ExposeNetworkOption, type ExposeNetworkSteps } from './options.js';

interface Types {
  connect: ExposeNetworkOption;
  proxy: ExposeNetworkOption;
  steps: ExposeNetworkSteps;
}

export const declared = declareFeature<Types>()({
  checks: { connect: exposeNetworkChecks, proxy: exposeNetworkChecks },
  variable: { option: 'exposeNetwork', name: 'BROWSER_POOL_EXPOSE_NETWORK' },
});

/** @internal */
export const load = async () => (await import('./expose-network.js')).ExposeNetwork;
