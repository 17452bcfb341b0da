import type { BrowserProtocol } from '../../drivers/connector.js';
import { lazy } from '../../shared/lazy.js';
import { declareFeature } from '../declaration.js';
import {
  allowedHostsChecks,
  NO_LIMIT,
  verifyAllowedHosts,
  type AllowedHostsOption,
  type AllowedHostsResult,
  type AllowedHostsSettings,
  type AllowedHostsSteps,
} from './options.js';

export const declared = declareFeature<{
  lease: AllowedHostsOption;
  proxy: AllowedHostsOption;
  result: AllowedHostsResult;
  steps: AllowedHostsSteps;
}>()({
  checks: { lease: allowedHostsChecks, proxy: allowedHostsChecks },
  none: () => ({ refusedHosts: [] }),
  verify: verifyAllowedHosts,
  variable: { option: 'allowedHosts', name: 'BROWSER_POOL_ALLOWED_HOSTS', refusal: NO_LIMIT },
});

const load = lazy(() => import('./allowed-hosts.js'));

/** @internal */
export const create = async ({
  allowedHosts,
  protocol,
}: AllowedHostsSettings & { protocol: BrowserProtocol }) =>
  allowedHosts === undefined ? undefined : new (await load()).AllowedHosts(allowedHosts, protocol);
