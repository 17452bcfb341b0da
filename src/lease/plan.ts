import type { Leftovers } from '../clean/browser-state.js';
import type { LoadDrivers } from '../drivers/connection.js';
import type { Connector } from '../drivers/connector.js';
import type { PoolApi } from '../pool/pool-settings.js';
import type { PoolCore } from '../pool/pool-core.js';
import type { Grant, LeaseRequest } from '../services/browser-service.js';
import type { FeatureSet } from './feature.js';
import type { LeaseSettings } from './options.js';

/** What a call asks of its lease. */
export interface LeasePlan<Session extends object = object, Features extends FeatureSet = FeatureSet> {
  /** One, or several in the order in which they are asked. */
  readonly pools: readonly [PoolApi<Session>, ...PoolApi<Session>[]];
  readonly settings: LeaseSettings<Session>;
  readonly features: Features;
  /** The connector; undefined if another program connects. */
  readonly connector?: Connector;
  /** Loads what connects, and what cleans a browser. */
  readonly loadDrivers: LoadDrivers;
  /** False if the tasks of the lease use contexts of their own. Default: true with `context: 'default'`. */
  readonly isOwnContextUsed?: boolean | undefined;
  /** The tasks of the lease open their own pages. */
  readonly isForTasks?: boolean;
  /** Returns a sentence for the error of a call for which no browser of a pool became available. */
  readonly advise?: ((pool: PoolCore) => string | undefined) | undefined;
  /** Names that the caller adds to the handles of the connector. Default: `session` and `signal`. */
  readonly addedNames?: readonly string[];
}

/** What a call asks that uses the browser itself. */
export interface ConnectedPlan<
  Handles,
  Session extends object,
  Features extends FeatureSet,
> extends LeasePlan<Session, Features> {
  readonly connector: Connector<Handles>;
}

export interface LeaseEnd {
  readonly status: 'ok' | 'failed';
  readonly error?: unknown;
  /** Leave the browser leased and unchanged, for another process. */
  readonly isDetached?: boolean;
  /** Another program may go on to use the browser, which no other lease may get then. */
  readonly isInUse?: boolean;
}

/** What another process needs to continue a lease. */
export interface DetachedState<Session extends object = object> {
  readonly grant: Grant<Session>;
  /** The request that leased the browser. */
  readonly lease: LeaseRequest;
  /** The service showed the mark of the lease when it leased the browser. */
  readonly isMarkShown: boolean;
  readonly left: Leftovers & { readonly mayBeReused: boolean };
  /** What the features saved, by their names. */
  readonly features: Readonly<Record<string, unknown>>;
}
