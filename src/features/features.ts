/** The features of a lease. Each is a folder and its line here: without both, the rest works as before. */
export { allowedHosts } from './allowed-hosts/feature.js';
export { artifacts } from './artifacts/feature.js';
export { downloads } from './downloads/feature.js';
export { exposeNetwork } from './exposed-network/feature.js';
export { nesting } from './nesting/feature.js';
export { owner } from './owner/feature.js';
export { pendingCalls } from './pending-calls/feature.js';
export { replays } from './replays/feature.js';
export { startPage } from './start-page/feature.js';
