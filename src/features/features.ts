/** The features of a lease. Each is a folder and its line here: without both, the rest works as before. */
export * as allowedHosts from './allowed-hosts/feature.js';
export * as artifacts from './artifacts/feature.js';
export * as downloads from './files/feature.js';
export * as exposeNetwork from './exposed-network/feature.js';
export * as lifetime from './lifetime/feature.js';
export * as handoff from './handoff/feature.js';
export * as pendingCalls from './pending-calls/feature.js';
export * as replays from './replays/feature.js';
export * as startPage from './start-page/feature.js';
