/**
 * The client of the service, and everything that does not depend on an automation library.
 *
 * @module pooled-browser
 */
export type {
  LibraryConnection,
  Connector,
  ConnectRequest,
  ContextChoice,
  Isolation,
  Observation,
  ObserveRequest,
  OpenedContext,
  OpenUrlOptions,
  PageReport,
  BrowserProtocol,
  Workspace,
} from './drivers/connector.js';
export {
  InvalidOptionError,
  isPooledBrowserError,
  MissingLibraryError,
  PooledBrowserError,
  type ErrorFacts,
} from './shared/errors.js';
export * from './shared/service-errors.js';
export * from './shared/lease-errors.js';
export type { StageTrace } from './shared/telemetry.js';
export type { CheckpointOptions, JobOptions, MapOptions, InputOptions, TaskOptions } from './jobs/options.js';
export { mapPooledBrowsers, readCheckpoint, type Outcomes } from './jobs/map-pooled-browsers.js';
export type {
  AttemptFacts,
  FulfilledOutcome,
  Outcome,
  OutcomeRecord,
  RecordedReason,
  RejectedOutcome,
  TaskCallback,
  TaskFacts,
} from './jobs/outcome.js';
export type {
  FailedAttempt,
  HostProgress,
  MapProgress,
  MapSummary,
  RunningAttempt,
} from './jobs/progress.js';
export type { ProxyEvent, ProxySteps, RunEvent, RunStep, RunSteps } from './calls/events.js';
export { serveProxy, type PoolProxy } from './calls/serve-proxy.js';
export { DetachedLease } from './calls/detached-lease.js';
export { attachBrowser, leaseBrowser, withPooledBrowser, type PooledBrowser } from './calls/lease-browser.js';
export type {
  LeaseAcquireOptions as AcquireSettings,
  AttachOptions,
  LeaseConnectOptions as ConnectSettings,
  HeldLeaseOptions,
  LeaseOptions,
  ProxyOptions,
  LeaseReleaseOptions as ReleaseSettings,
  RunOptions,
} from './calls/options.js';
export type { Callback, LeaseFacts } from './calls/callback.js';
export type { HandoffAnswer, HandoffFacts, HandoffOptions } from './features/handoff/options.js';
export type { LibraryTypes, ReconnectOptions as ReconnectSettings, RetryOptions } from './lease/options.js';
export type { RefusedHost } from './features/allowed-hosts/options.js';
export type { ArtifactsOptions } from './features/artifacts/options.js';
export type { DownloadedFile, DownloadsOptions } from './features/files/options.js';
export type { KeepOptions, RecordingOptions, ReplayStatus } from './features/replays/options.js';
export { runOf, type FailedRun, type Run, type RunSummary, type Stage, type Timings } from './calls/run.js';
export type { LeaseOutcome, ReleaseChoice, Released } from './lease/summary.js';
export { BrowserPool, type Pools } from './pool/browser-pool.js';
export type { BrowserService, Replay, ReplayRequest, SessionOptions } from './services/browser-service.js';
export type { DownloadedReplay } from './pool/download-replay.js';
export type { PoolEvent } from './pool/events.js';
export type {
  AcquireOptions,
  BrowserPoolOptions,
  DownloadOptions,
  LocalBrowserKind,
  LocalOptions,
  ReleaseOptions,
  RequestOptions,
  Token,
} from './pool/pool-options.js';
export type {
  AcquireRequest,
  BrowserSession,
  PoolConfig,
  PoolRecord,
  Profile,
  Telemetry,
  TelemetryCategory,
  BrowserViewport,
} from './services/kernel-api.js';
export type { ClientSocket } from './drivers/socket.js';
