import { declareFeature } from '../declaration.js';
import {
  allowedHostsChecks,
  NO_LIMIT,
  verifyAllowedHosts,
  type AllowedHostsOption,
  type AllowedHostsResult,
  type AllowedHostsSteps,
} from './options.js';

interface Types {
  lease: AllowedHostsOption;
  proxy: AllowedHostsOption;
  result: AllowedHostsResult;
  steps: AllowedHostsSteps;
}

export const declared = declareFeature<Types>()({
  checks: { lease: allowedHostsChecks, proxy: allowedHostsChecks },
  verify: verifyAllowedHosts,
  variable: { option: 'allowedHosts', name: 'BROWSER_POOL_ALLOWED_HOSTS', refusal: NO_LIMIT },
});

/** @internal */
export const load = async () => (await import('./allowed-hosts.js')).AllowedHosts;
