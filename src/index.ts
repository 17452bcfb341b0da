/**
 * The client of the service, and everything that does not depend on an automation library.
 *
 * @module pooled-browser
 */
export type {
  Connection,
  Connector,
  ConnectRequest,
  ContextChoice,
  Isolation,
  Observation,
  ObserveRequest,
  PageReport,
  Protocol,
  TestContext,
  TestPage,
  Workspace,
} from './connect/connector.js';
export {
  InvalidOptionError,
  isPooledBrowserError,
  MissingLibraryError,
  PooledBrowserError,
  type ErrorFacts,
} from './shared/errors.js';
export * from './shared/service-errors.js';
export * from './shared/lease-errors.js';
export type { Stage, StageTrace } from './shared/telemetry.js';
export type {
  CheckpointOptions,
  LaneOptions,
  MapOptions,
  InputOptions,
  TaskOptions,
} from './jobs/options.js';
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
export type { Callback, LeaseFacts } from './lease/lease.js';
export type { ProxyEvent, ProxySteps, RunEvent, RunStep, Steps as RunSteps } from './lease/events.js';
export { serveProxy, type PoolProxy } from './calls/serve-proxy.js';
export { DetachedLease } from './calls/detached-lease.js';
export { attachBrowser, leaseBrowser, withPooledBrowser, type PooledBrowser } from './calls/lease-browser.js';
export type {
  AcquireSettings,
  ArtifactsOptions,
  AttachOptions,
  ConnectSettings,
  DownloadsOptions,
  HeldLeaseOptions,
  LeaseOptions,
  LibraryTypes,
  ProxyOptions,
  ReconnectSettings,
  RecordingOptions,
  ReleaseSettings,
  RetryOptions,
  RunOptions,
} from './lease/options.js';
export {
  runOf,
  type Download,
  type FailedRun,
  type LeaseOutcome,
  type ReleaseChoice,
  type ReplayStatus,
  type Released,
  type Run,
  type RunSummary,
  type Timings,
} from './lease/run.js';
export { BrowserPool } from './pool/browser-pool.js';
export type { BrowserService, Replay, ReplayRequest } from './services/browser-service.js';
export type { DownloadedReplay } from './pool/download-replay.js';
export type { PoolEvent } from './pool/events.js';
export type {
  AcquireOptions,
  BrowserPoolOptions,
  DownloadOptions,
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
  Viewport,
} from './services/kernel-api.js';
export type { Frame, Socket, SocketEnd } from './connect/socket.js';
