import { lazy } from '../shared/lazy.js';

/** Loads what a lease needs, at the first call: an import of this library loads only the options and the pool. */
export const loadLease = lazy(() => import('./lease.js'));
