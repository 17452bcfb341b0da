import type { LeaseFeatures } from '../features/create-features.js';
import type { FeatureFacts } from '../features/options.js';
import type { BrowserSession } from '../services/kernel-api.js';
import { handoffOf, type HandedLease } from './handoff.js';

/** The part of every callback's argument that does not come from the library. */
export interface LeaseFacts<Session extends object = BrowserSession> extends FeatureFacts {
  /** The leased session. */
  session: Session;
  /** Aborts when the run must end: the caller's signal, a timeout, the end of the lease, or a lost browser. */
  signal: AbortSignal;
}

/** The callback of `withPooledBrowser`. It is called once, with a connected browser. */
export type Callback<Handles, Value, Session extends object = BrowserSession> = (
  lease: Handles & LeaseFacts<Session>,
) => Value | PromiseLike<Value>;

/** @internal What the features add to the argument of a callback or task, and to a leased browser. */
export function factsOf(lease: HandedLease): FeatureFacts {
  return { ...partsOf(lease.features), handoff: handoffOf(lease) };
}

/** @internal The names of these. */
export function namesOfFacts(features: LeaseFeatures): string[] {
  return [...Object.keys(partsOf(features)), 'handoff'];
}

function partsOf(features: LeaseFeatures): Omit<FeatureFacts, 'handoff'> {
  const parts = Object.values<object | undefined>(features).map((one) =>
    one && 'facts' in one ? one.facts : undefined,
  );
  return Object.assign({}, ...parts) as Omit<FeatureFacts, 'handoff'>;
}
