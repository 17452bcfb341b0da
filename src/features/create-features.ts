import type { LeaseFeature } from '../lease/feature.js';
import type { ConnectedLease } from '../lease/lease.js';
import type { Together } from '../shared/together.js';
import type { Declaration } from './declaration.js';
import * as features from './features.js';
import { PlaceholderFiles } from './placeholder-files.js';

type Creators = { readonly [Name in keyof typeof features]: (typeof features)[Name]['create'] };

/** The features of a lease, by their names in the list. One whose option is off does not exist. */
export type LeaseFeatures = {
  readonly [Name in keyof Creators]: Awaited<ReturnType<Creators[Name]>>;
};
/** The checked options that the features take. */
type Settings = Together<{
  [Name in keyof Creators]: Parameters<Creators[Name]> extends [infer Own, ...unknown[]] ? Own : unknown;
}>;

/** A connected lease with all features. */
export type PooledLease<Handles, Session extends object = object> = ConnectedLease<
  Handles,
  Session,
  LeaseFeatures
>;

interface ListedFeature {
  readonly declared: Declaration;
  /** Loads its class, unless its option is off. It sees all options. */
  readonly create: (settings: never, placeholders: PlaceholderFiles) => Promise<LeaseFeature | undefined>;
}

const all = Object.entries<ListedFeature>(features);

/** What stands in the result for the features that are off. */
const off: LeaseFeature = {
  get summary() {
    return Object.assign({}, ...all.map(([, { declared }]) => declared.none?.())) as object;
  },
};

export async function createFeatures(settings: Settings): Promise<LeaseFeatures> {
  // Files that one feature announces, and another one receives.
  const placeholders = new PlaceholderFiles();
  const creating = all.map(
    async ([name, { create }]) => [name, await create(settings as never, placeholders)] as const,
  );
  // First: the result of a feature replaces what stands for it.
  return { off, ...Object.fromEntries(await Promise.all(creating)) } as unknown as LeaseFeatures;
}
