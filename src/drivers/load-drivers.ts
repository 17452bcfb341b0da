import { lazy } from '../shared/lazy.js';

/** Loads this folder: while the acquire request waits, with the automation library. */
export const loadDrivers = lazy(async () => (await import('./connect-session.js')).drivers);
