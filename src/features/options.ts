import type { CheckingConnector } from '../connect/connector.js';
import type { OwnerSettings } from '../pool/pool-options.js';
import {
  verifyAllowedHosts,
  type AllowedHostsResult,
  type AllowedHostsSettings,
  type AllowedHostsSteps,
} from './allowed-hosts/options.js';
import {
  verifyArtifacts,
  type ArtifactsFeatureSettings,
  type ArtifactsResult,
  type ArtifactsSteps,
} from './artifacts/options.js';
import type { DownloadsFeatureSettings, DownloadsResult, DownloadsSteps } from './downloads/options.js';
import type { ExposeNetworkSettings, ExposeNetworkSteps } from './exposed-network/options.js';
import type { PendingCallsSteps } from './pending-calls/options.js';
import {
  verifyReplays,
  type ReplaysResult,
  type ReplaysSettings,
  type ReplaysSteps,
  type ReplaysTimes,
} from './replays/options.js';
import type { StartPageSettings, StartPageSteps } from './start-page/options.js';

/** The checked options of all features. */
export interface FeatureSettings
  extends
    ReplaysSettings,
    ArtifactsFeatureSettings,
    DownloadsFeatureSettings,
    ExposeNetworkSettings,
    AllowedHostsSettings,
    OwnerSettings,
    StartPageSettings {}
/** The parts of a result. */
export interface FeatureResults extends ReplaysResult, ArtifactsResult, DownloadsResult, AllowedHostsResult {}
/** The stages of `timings`. */
export interface FeatureTimes extends ReplaysTimes {}
/** The events. */
export interface FeatureSteps
  extends
    ReplaysSteps,
    ArtifactsSteps,
    DownloadsSteps,
    ExposeNetworkSteps,
    AllowedHostsSteps,
    PendingCallsSteps,
    StartPageSteps {}

/** Refuses options that exclude each other, and what the library can't do. */
export function verifyFeatures(
  settings: FeatureSettings & Parameters<typeof verifyAllowedHosts>[0],
  connector: CheckingConnector | undefined,
): void {
  verifyReplays(settings);
  verifyArtifacts(settings, connector);
  verifyAllowedHosts(settings);
}
