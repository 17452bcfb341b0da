import { declareFeature } from '../declaration.js';
import type { PendingCallsSteps } from './options.js';

export const pendingCalls = declareFeature<{ steps: PendingCallsSteps }>()({
  load: async () => (await import('./pending-calls.js')).PendingCalls,
});
