import type { ConnectedLease } from '../lease/lease.js';
import { AllowedHosts } from './allowed-hosts/allowed-hosts.js';
import { Artifacts } from './artifacts/artifacts.js';
import { Downloads } from './downloads/downloads.js';
import { ExposeNetwork } from './exposed-network/expose-network.js';
import { Nesting } from './nesting/nesting.js';
import type { FeatureSettings } from './options.js';
import { Owner } from './owner/owner.js';
import { PendingCalls } from './pending-calls/pending-calls.js';
import { Replays } from './replays/replays.js';
import { StartPage } from './start-page/start-page.js';

/**
 * The list of the features: each lease has one of each. It is created where the call begins: see `nesting`.
 *
 * @param isForTasks The lease is for tasks, which open their own pages.
 */
export function createFeatures(settings: FeatureSettings, isForTasks = false) {
  return {
    replays: new Replays(settings),
    artifacts: new Artifacts(settings),
    downloads: new Downloads(settings),
    allowedHosts: new AllowedHosts(settings.allowedHosts),
    exposeNetwork: new ExposeNetwork(settings.exposeNetwork),
    owner: new Owner(settings),
    pendingCalls: new PendingCalls(),
    nesting: new Nesting(),
    startPage: new StartPage(settings, isForTasks),
  };
}

export type LeaseFeatures = ReturnType<typeof createFeatures>;

/** A connected lease with all features. */
export type PooledLease<Handles, Session extends object = object> = ConnectedLease<
  Handles,
  Session,
  LeaseFeatures
>;
