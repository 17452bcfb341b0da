export type { RetryOptions } from './lease/retry-rules.js';
export type {
  Connection,
  Connector,
  ConnectRequest,
  ContextChoice,
  Isolation,
  Workspace,
} from './connect/connector.js';
export type { Protocol } from './connect/protocol.js';
export * from './shared/errors.js';
export * from './shared/service-errors.js';
export * from './shared/lease-errors.js';
export type { Stage, StageTrace } from './shared/telemetry.js';
export type { CheckpointOptions } from './map/checkpoint.js';
export { mapPooledBrowsers, type Outcomes } from './map/map-pooled-browsers.js';
export type { MapOptions } from './map/options.js';
export type { FulfilledOutcome, Outcome, RejectedOutcome, TaskCallback, TaskFacts } from './map/outcome.js';
export type { OutcomeRecord, RecordedReason } from './map/outcome-record.js';
export type { MapProgress } from './map/progress.js';
export { readCheckpoint } from './map/read-checkpoint.js';
export type { RecordingOptions, RecordingStart, RecordingStop } from './lease/recording-options.js';
export type { ReplayStatus } from './lease/replay-status.js';
export type { Callback, LeaseFacts } from './lease/callback.js';
export type { RunEvent, RunStep } from './lease/events.js';
export { attachBrowser } from './lease/attach-browser.js';
export { DetachedLease } from './lease/detached-lease.js';
export { leaseBrowser } from './lease/lease-browser.js';
export type { PooledBrowser } from './lease/pooled-browser.js';
export type {
  AttachOptions,
  HeldLeaseOptions,
  LeaseOptions,
  LeaseOutcome,
  ReleaseChoice,
  RunOptions,
} from './lease/options.js';
export { runOf, type FailedRun, type Released, type Run, type RunTail, type Timings } from './lease/run.js';
export { withPooledBrowser } from './lease/with-pooled-browser.js';
export { BrowserPool } from './service/browser-pool.js';
export type { Token } from './service/authorization.js';
export type { PoolEvent } from './service/pool-events.js';
export type {
  AcquireOptions,
  BrowserPoolOptions,
  DownloadedReplay,
  DownloadOptions,
  ReleaseOptions,
  RequestOptions,
} from './service/pool-options.js';
export type { PoolStats, WaitHistogram } from './service/pool-stats.js';
export type * from './service/wire.js';
