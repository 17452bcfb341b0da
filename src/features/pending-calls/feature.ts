import { declareFeature } from '../declaration.js';
import type { PendingCallsSteps } from './options.js';

export const declared = declareFeature<{ steps: PendingCallsSteps }>()({ checks: {} });

/** @internal */
export const load = async () => (await import('./pending-calls.js')).PendingCalls;
