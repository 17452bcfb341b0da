export type { RetryOptions } from './acquire/retry-rules.js';
export type {
  Connection,
  Connector,
  ConnectRequest,
  ContextChoice,
  Isolation,
  Workspace,
} from './connect/connector.js';
export type { Protocol } from './connect/protocol.js';
export * from './errors/index.js';
export type { Stage, StageTrace } from './internal/tracing.js';
export type { CheckpointOptions } from './map/checkpoint.js';
export { mapPooledBrowsers, type Outcomes } from './map/map-pooled-browsers.js';
export type { MapOptions } from './map/options.js';
export type { FulfilledOutcome, Outcome, RejectedOutcome, TaskCallback, TaskFacts } from './map/outcome.js';
export type { OutcomeRecord, RecordedReason } from './map/outcome-record.js';
export type { MapProgress } from './map/progress.js';
export { readCheckpoint } from './map/read-checkpoint.js';
export type { RecordingOptions, RecordingStart, RecordingStop } from './replays/recording-options.js';
export type { ReplayStatus } from './replays/replay-status.js';
export type { Callback, LeaseFacts } from './run/callback.js';
export type { RunEvent, RunStep } from './run/events.js';
export { attachBrowser } from './run/attach-browser.js';
export { DetachedLease } from './run/detached-lease.js';
export { leaseBrowser } from './run/lease-browser.js';
export type { PooledBrowser } from './run/pooled-browser.js';
export type {
  AttachOptions,
  HeldLeaseOptions,
  LeaseOptions,
  LeaseOutcome,
  ReleaseChoice,
  RunOptions,
} from './run/options.js';
export { runOf, type FailedRun, type Released, type Run, type RunTail, type Timings } from './run/run.js';
export { withPooledBrowser } from './run/with-pooled-browser.js';
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
