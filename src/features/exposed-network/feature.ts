import { lazy } from '../../shared/lazy.js';
import { declareFeature } from '../declaration.js';
import type { PlaceholderFiles } from '../placeholder-files.js';
import {
  exposeNetworkChecks,
  type ExposeNetworkOption,
  type ExposeNetworkSettings,
  type ExposeNetworkSteps,
} from './options.js';

export const declared = declareFeature<{
  connect: ExposeNetworkOption;
  proxy: ExposeNetworkOption;
  steps: ExposeNetworkSteps;
}>()({
  checks: { connect: exposeNetworkChecks, proxy: exposeNetworkChecks },
  variable: { option: 'exposeNetwork', name: 'BROWSER_POOL_EXPOSE_NETWORK' },
});

const load = lazy(() => import('./expose-network.js'));
/** Without the option it keeps nothing: one serves all leases. */
const loadOff = lazy(async () => new (await load()).ExposeNetwork());

/** @internal */
export const create = async ({ exposeNetwork }: ExposeNetworkSettings, placeholders: PlaceholderFiles) =>
  exposeNetwork === undefined ? loadOff() : new (await load()).ExposeNetwork({ exposeNetwork, placeholders });
