import { lazy } from '../../shared/lazy.js';
import { declareFeature } from '../declaration.js';
import type { PendingCallsSteps } from './options.js';

export const declared = declareFeature<{ steps: PendingCallsSteps }>()({ checks: {} });

const load = lazy(() => import('./pending-calls.js'));

/** @internal */
export const create = async () => new (await load()).PendingCalls();
