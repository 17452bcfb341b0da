import { lazy } from '../../shared/lazy.js';
import { declareFeature } from '../declaration.js';
import type { PendingCallsSteps } from './options.js';

export const declared = declareFeature<{ steps: PendingCallsSteps }>()({ checks: {} });

/** It keeps nothing: one serves all leases. */
const load = lazy(async () => new (await import('./pending-calls.js')).PendingCalls());

/** @internal */
export const create = () => load();
