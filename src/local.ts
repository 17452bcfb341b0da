/**
 * The service's API over Chromium on this machine.
 *
 * @module pooled-browser/local
 */
export { startLocalPool } from './local/start-local-pool.js';
export { findBrowser, type FindBrowserOptions } from './local/browser/find-browser.js';
export type { LocalPool } from './local/start-local-pool.js';
export type { LocalPoolEvent, LocalPoolStats } from './local/events.js';
export type { LocalPoolOptions } from './local/options.js';
export type {
  LocalPoolQuirks,
  LocalPoolRecording,
  LocalPoolSettings,
  LocalPoolTelemetry,
  LocalPoolViewport,
} from './local/settings.js';
