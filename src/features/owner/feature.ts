import { ownerChecks, type OwnerOptions } from '../../pool/pool-options.js';
import { declareFeature } from '../declaration.js';

export const declared = declareFeature<{ acquire: OwnerOptions }>()({
  checks: { acquire: ownerChecks },
});

/** @internal */
export const load = async () => (await import('./owner.js')).Owner;
