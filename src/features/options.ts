import type { CheckingConnector } from '../connect/connector.js';
import { ownerChecks, type OwnerOptions } from '../pool/pool-options.js';
import { environment } from '../shared/environment.js';
import { InvalidOptionError } from '../shared/errors.js';
import { patternOf, readHosts } from '../shared/hosts.js';
import { checksOf, readOption, type Checked, type Checks } from '../shared/options.js';
import * as allowedHosts from './allowed-hosts/options.js';
import * as artifacts from './artifacts/options.js';
import * as downloads from './downloads/options.js';
import * as exposeNetwork from './exposed-network/options.js';
import type * as pendingCalls from './pending-calls/options.js';
import * as replays from './replays/options.js';
import * as startPage from './start-page/options.js';

/** The options of all callers that acquire. */
export interface FeatureAcquireOptions extends startPage.StartPageOptions, OwnerOptions {}
/** Of all that connect. */
export interface FeatureConnectOptions
  extends exposeNetwork.ExposeNetworkOption, downloads.DownloadsFeatureOptions {}
/** Of all that acquire and connect. */
export interface FeatureLeaseOptions extends allowedHosts.AllowedHostsOption {}
/** Of all. */
export interface FeatureReleaseOptions extends replays.ReplaysOptions {}
/** Of all that connect, and of the proxy. */
export interface FeatureProxyOptions
  extends exposeNetwork.ExposeNetworkOption, allowedHosts.AllowedHostsOption {}
/** Of `withPooledBrowser`. */
export interface FeatureRunOptions extends artifacts.ArtifactsFeatureOptions {}

/** Their checks. The interfaces above are for readers: an editor shows their names and descriptions. */
export const featureChecks = {
  acquire: checksOf<FeatureAcquireOptions>()({ ...startPage.startPageChecks, ...ownerChecks }),
  connect: checksOf<FeatureConnectOptions>()({
    ...exposeNetwork.exposeNetworkChecks,
    ...downloads.downloadsChecks,
  }),
  lease: checksOf<FeatureLeaseOptions>()(allowedHosts.allowedHostsChecks),
  proxy: checksOf<FeatureProxyOptions>()({
    ...exposeNetwork.exposeNetworkChecks,
    ...allowedHosts.allowedHostsChecks,
  }),
  release: checksOf<FeatureReleaseOptions>()(replays.replaysChecks),
  run: checksOf<FeatureRunOptions>()(artifacts.artifactsChecks),
};

type CheckedBy<Caller extends keyof typeof featureChecks> = Checked<(typeof featureChecks)[Caller]>;
/** The checked options of all features. */
export type FeatureSettings = CheckedBy<'acquire'> &
  CheckedBy<'connect'> &
  CheckedBy<'lease'> &
  CheckedBy<'release'> &
  CheckedBy<'run'>;

/** The parts of a result. */
export interface FeatureResults
  extends
    replays.ReplaysResult,
    artifacts.ArtifactsResult,
    downloads.DownloadsResult,
    allowedHosts.AllowedHostsResult {}
/** The stages of `timings`. */
export interface FeatureTimes extends replays.ReplaysTimes {}
/** The events. */
export interface FeatureSteps
  extends
    replays.ReplaysSteps,
    artifacts.ArtifactsSteps,
    downloads.DownloadsSteps,
    exposeNetwork.ExposeNetworkSteps,
    allowedHosts.AllowedHostsSteps,
    pendingCalls.PendingCallsSteps,
    startPage.StartPageSteps {}

/** Refuses options that exclude each other, and what the library can't do. Returns the option `contextOptions`. */
export function verifyFeatures(
  settings: FeatureSettings & Parameters<typeof allowedHosts.verifyAllowedHosts>[0],
  connector: CheckingConnector | undefined,
): object | undefined {
  replays.verifyReplays(settings);
  artifacts.verifyArtifacts(settings, connector);
  return allowedHosts.verifyAllowedHosts(settings);
}

export { NO_BIDI } from './allowed-hosts/options.js';

/** The URLs that a client may reach. Undefined: all. */
export function reachableUrls({
  allowedHosts: allowed,
  exposeNetwork: exposed,
}: Pick<FeatureSettings, 'allowedHosts' | 'exposeNetwork'>): RegExp | undefined {
  if (allowed === undefined) return undefined;
  return patternOf(readHosts(exposed === undefined ? allowed : `${allowed},${exposed}`));
}

/** The variables of options. */
const VARIABLES = {
  exposeNetwork: 'BROWSER_POOL_EXPOSE_NETWORK',
  allowedHosts: 'BROWSER_POOL_ALLOWED_HOSTS',
} as const;

/** Returns the option of a variable, checked. */
export function optionOfEnvironment(name: keyof typeof VARIABLES): string | undefined {
  return readOption(featureChecks.proxy[name], VARIABLES[name], environment[name]());
}

/** Returns the options of the environment. @param checks The options that the caller takes. */
export function optionsOfEnvironment(checks: Checks): Pick<FeatureSettings, keyof typeof VARIABLES> {
  const read = (name: keyof typeof VARIABLES) =>
    Object.hasOwn(checks, name) ? optionOfEnvironment(name) : undefined;
  const isUnlimited = !Object.hasOwn(checks, 'allowedHosts') && environment.allowedHosts() !== undefined;
  if (isUnlimited) throw new InvalidOptionError(VARIABLES.allowedHosts, allowedHosts.NO_LIMIT);
  return { exposeNetwork: read('exposeNetwork'), allowedHosts: read('allowedHosts') };
}
