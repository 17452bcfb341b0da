import { StandIns } from './stand-ins.js';
import type { LeaseFeature } from '../lease/feature.js';
import type { ConnectedLease } from '../lease/lease.js';
import { lazy } from '../shared/lazy.js';
import type { Together } from '../shared/together.js';
import * as features from './features.js';

type Classes = {
  readonly [Name in keyof typeof features]: Awaited<ReturnType<(typeof features)[Name]['load']>>;
};

/** One object of each feature, by its name in the list. */
export type LeaseFeatures = { readonly [Name in keyof Classes]: InstanceType<Classes[Name]> };
/** The checked options that the features take. */
type Settings = Together<{
  [Name in keyof Classes]: Classes[Name] extends new (settings: infer Own, ...rest: never[]) => LeaseFeature
    ? Own
    : unknown;
}>;

/** A connected lease with all features. */
export type PooledLease<Handles, Session extends object = object> = ConnectedLease<
  Handles,
  Session,
  LeaseFeatures
>;

/** Imports the class of a feature. */
type LoadFeature = () => Promise<
  new (settings: never, isForTasks: boolean, between: { readonly standIns: StandIns }) => LeaseFeature
>;

/** Imports the classes of the features, at the first lease. */
export const loadFeatures = lazy(() =>
  Promise.all(
    Object.entries<{ load: LoadFeature }>(features).map(
      async ([name, { load }]) => [name, await load()] as const,
    ),
  ),
);

/**
 * Creates the features of a lease, where the call begins: see `nesting`.
 *
 * @param isForTasks The lease is for tasks, which open their own pages.
 */
export async function createFeatures(settings: Settings, isForTasks = false): Promise<LeaseFeatures> {
  const loaded = await loadFeatures();
  // What one feature makes, and another one uses.
  const between = { standIns: new StandIns() };
  const created = loaded.map(
    ([name, Feature]) => [name, new Feature(settings as never, isForTasks, between)] as const,
  );
  return Object.fromEntries(created) as unknown as LeaseFeatures;
}
