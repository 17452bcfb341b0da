import { lazy } from '../shared/lazy.js';

/** Loads what connects: while the acquire request waits, with the automation library. */
export const loadDrivers = lazy(async () => (await import('../drivers/connect-session.js')).drivers);
