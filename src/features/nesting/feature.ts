import { declareFeature } from '../declaration.js';

export const nesting = declareFeature()({ load: async () => (await import('./nesting.js')).Nesting });
