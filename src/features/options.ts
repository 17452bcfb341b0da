import type { CheckingConnector } from '../connect/connector.js';
import type { Checked } from '../shared/options.js';
import {
  artifactsChecks,
  verifyArtifacts,
  type ArtifactsResult,
  type ArtifactsSteps,
} from './artifacts/options.js';
import {
  downloadsChecks,
  readDownloads,
  type DownloadsResult,
  type DownloadsSettings,
  type DownloadsSteps,
} from './downloads/options.js';
import { exposeNetworkChecks, type ExposeNetworkSteps } from './exposed-network/options.js';
import { ownerChecks } from './owner/options.js';
import type { PendingCallsSteps } from './pending-calls/options.js';
import {
  replaysChecks,
  verifyReplays,
  type ReplaysResult,
  type ReplaysSteps,
  type ReplaysTimes,
} from './replays/options.js';
import type { StartPageSteps } from './start-page/options.js';

/** The options of all features. */
export const featureChecks = {
  ...replaysChecks,
  ...artifactsChecks,
  ...downloadsChecks,
  ...exposeNetworkChecks,
  ...ownerChecks,
};
/** The checked options of all features. */
export interface FeatureSettings extends Omit<Checked<typeof featureChecks>, 'downloads'> {
  readonly downloads?: DownloadsSettings | undefined;
}
/** The parts of a result. */
export interface FeatureResults extends ReplaysResult, ArtifactsResult, DownloadsResult {}
/** The stages of `timings`. */
export interface FeatureTimes extends ReplaysTimes {}
/** The events. */
export interface FeatureSteps
  extends
    ReplaysSteps,
    ArtifactsSteps,
    DownloadsSteps,
    ExposeNetworkSteps,
    PendingCallsSteps,
    StartPageSteps {}

/** Completes checked options, and refuses combinations and what the library can't do. */
export function verifyFeatures<Settings extends Checked<typeof featureChecks>>(
  settings: Settings,
  connector: CheckingConnector | undefined,
): Omit<Settings, 'downloads'> & FeatureSettings {
  verifyReplays(settings);
  verifyArtifacts(settings, connector);
  return { ...settings, downloads: readDownloads(settings.downloads) };
}
