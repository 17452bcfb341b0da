export type { RetryOptions } from './acquire/retry-rules.js';
export type { Connection, Connector, ConnectRequest, ContextChoice } from './connect/connector.js';
export type { Protocol } from './connect/protocol.js';
export * from './errors/index.js';
export type { ReplayStatus } from './replays/lease-replays.js';
export type { Callback, LeaseFacts } from './run/callback.js';
export type { RunEvent, RunStep } from './run/events.js';
export { leaseBrowser, type PooledBrowser } from './run/lease-browser.js';
export type { LeaseOptions, LeaseOutcome, ReleaseChoice, RunOptions } from './run/options.js';
export { runOf, type FailedRun, type Released, type Run, type RunTail, type Timings } from './run/run.js';
export { withPooledBrowser } from './run/with-pooled-browser.js';
export { BrowserPool } from './service/browser-pool.js';
export type { Token } from './service/authorization.js';
export type { PoolEvent } from './service/pool-events.js';
export type {
  AcquireOptions,
  BrowserPoolOptions,
  ReleaseOptions,
  RequestOptions,
} from './service/pool-options.js';
export type * from './service/wire.js';
