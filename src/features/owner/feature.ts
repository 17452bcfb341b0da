import { ownerChecks, type OwnerOptions } from '../../pool/pool-options.js';
import { declareFeature } from '../declaration.js';

export const owner = declareFeature<{ acquire: OwnerOptions }>()({
  checks: { acquire: ownerChecks },
  load: async () => (await import('./owner.js')).Owner,
});
