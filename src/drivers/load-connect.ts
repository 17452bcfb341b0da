import { lazy } from '../shared/lazy.js';

/** Loads what connects: while the acquire request waits, with the automation library. */
export const loadConnect = lazy(() => import('./connect-session.js'));
