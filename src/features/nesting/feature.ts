import { declareFeature } from '../declaration.js';

export const declared = declareFeature()({ checks: {} });

/** @internal */
export const load = async () => (await import('./nesting.js')).Nesting;
