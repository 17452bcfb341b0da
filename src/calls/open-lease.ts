import { createFeatures, type LeaseFeatures } from '../features/features.js';
import { Lease } from '../lease/lease.js';
import type { Handover, LeasePlan } from '../lease/plan.js';
import type { BrowserPool } from '../pool/browser-pool.js';
import type { AllSettings } from './options.js';

/** A lease with all features. */
export type PooledLease<Handles, Session extends object = object> = Lease<Handles, Session, LeaseFeatures>;

/** What a call asks of its lease. */
export interface CallPlan<Handles, Session extends object = object> extends Omit<
  LeasePlan<Handles, Session, LeaseFeatures>,
  'features' | 'pools'
> {
  readonly pool: BrowserPool<Session>;
  readonly settings: AllSettings<Session>;
  /** Tasks open their own pages. */
  readonly isForTasks?: boolean;
}

/** Leases a browser, with all features. The caller must call `end`. */
export function openLease<Handles, Session extends object>({
  pool,
  isForTasks,
  ...plan
}: CallPlan<Handles, Session>): Promise<PooledLease<Handles, Session>> {
  return Lease.open({ ...plan, pools: [pool], features: createFeatures(plan.settings, isForTasks) });
}

/** Continues a lease of another process, with all features. The caller must call `end`. */
export function attachLease<Handles, Session extends object>(
  { pool, ...plan }: CallPlan<Handles, Session>,
  handover: Handover<Session>,
): Promise<PooledLease<Handles, Session>> {
  return Lease.attach({ ...plan, pools: [pool], features: createFeatures(plan.settings) }, handover);
}
