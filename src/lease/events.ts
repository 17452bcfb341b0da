import type { BrowserLostError, DownloadError, LossReason } from '../shared/lease-errors.js';
import type { PoolEvent } from '../pool/events.js';
import type { Replay } from '../services/browser-service.js';
import type { BrowserSession } from '../services/kernel.js';
import type { Download, FailedRun, ReplayStatus, RunSummary } from './run.js';

/** The events of a call and their facts, by `type`, in their usual order. */
export interface Steps {
  /** Other calls of this process are before this one in the queue for the pool; `ahead` is their number. */
  queued: { ahead: number };
  /**
   * An acquire request is about to be sent. `attempt` is its number, from 1; `waited` the ms since the call began;
   * `timeLeft` the ms until `acquireTimeout`.
   */
  acquiring: { attempt: number; waited: number; timeLeft: number };
  /** The acquire request leased no browser, and another one follows. `error` is missing if the service just had none. */
  waiting: { attempt: number; waited: number; error?: Error };
  /** A browser was leased. `attempt` is the number of the lease: an unreachable browser is followed by another lease. */
  acquired: { session: BrowserSession; sessionId: string; attempt: number };
  /** The library begins to connect. */
  connecting: { sessionId: string; library: string; protocol: string };
  /** Unresponsive pages of an earlier lease kept the library from connecting, and were closed. */
  'unresponsive-pages-closed': { sessionId: string; urls: string[] };
  /** A page is usable. */
  connected: { sessionId: string };
  /** A page requested a host of `exposeNetwork`, with its port. Emitted once for each host. */
  'host-exposed': { sessionId: string; host: string };
  /** The library could not connect. */
  'connect-failed': { sessionId: string; error: Error };
  /** The recording has started. */
  'recording-started': { sessionId: string; replay: Replay };
  /** The service refused to record, or the recording did not start in time. The run continues. */
  'recording-unavailable': { sessionId: string; error: Error };
  /** The callback is about to be called. */
  'callback-started': { sessionId: string };
  /** The callback returned or threw, or the run no longer waits for it. */
  'callback-ended': { sessionId: string; status: 'ok' | 'failed' };
  /**
   * Calls of the callback had no result yet when the lease ended, probably because an `await` is missing. `methods` are the
   * protocol commands that they had sent; `message` is a sentence for a log.
   */
  'pending-calls': { sessionId: string; methods: readonly string[]; message: string };
  /** The connection was lost, and is not replaced. */
  'browser-lost': { sessionId: string; error: BrowserLostError };
  /** The connection was lost, and will be replaced (option `reconnect`). */
  'connection-dropped': { sessionId: string; reason: LossReason };
  /** A new connection to the same browser is open. */
  reconnected: { sessionId: string };
  /** The session has no connection, and the service will end it after `timeLeft` ms. */
  'session-expiring': { sessionId: string; timeLeft: number };
  /** The recording was stopped; with `error` if the service did not confirm it. */
  'recording-stopped': { sessionId: string; replay: Replay; error?: Error };
  /** The browser has begun to download a file (option `downloads`). */
  'download-started': { sessionId: string; url: string; suggestedFilename: string };
  /**
   * More of a large file has arrived, at every 4 MB: at the browser (`'receive'`), or from there on this machine (`'copy'`).
   * `total` is 0 if the size is unknown.
   */
  'download-progress': {
    sessionId: string;
    url: string;
    suggestedFilename: string;
    stage: 'receive' | 'copy';
    bytes: number;
    total: number;
  };
  /** A file is in the folder of the option `downloads`. */
  downloaded: { sessionId: string; download: Download };
  /** A download did not arrive: it was canceled, was too large, or was still running at the end of the lease. */
  'download-failed': { sessionId: string; url: string; error: DownloadError };
  /**
   * The artifacts of a run, task or test were collected: `paths` of their files, with errors if some are missing. Not
   * emitted after a success with `on: 'failure'`.
   */
  'artifacts-collected': { sessionId: string; paths: readonly string[]; errors: readonly Error[] };
  /** The contexts of the lease were closed, and the browser was cleaned; with `error` if something may be left. */
  'cleaned-up': { sessionId: string; error?: Error };
  /** The recordings of this lease were listed; with `replays: 'record'` once more after the wait for their videos. */
  replays: { sessionId: string; replays: readonly Replay[]; status: ReplayStatus; error?: Error };
  /** The call is over; `error` is what it throws. With `awaitRelease: false` the event of the release follows. */
  ended: { status: 'ok' | 'failed'; summary: FailedRun; error?: unknown };
}

/** An event of a call, without the fields that all events share. The types and their facts are in {@link Steps}. */
export type RunStep = { [Type in keyof Steps]: { type: Type } & Steps[Type] }[keyof Steps] | PoolEvent;

/**
 * The argument of `onEvent`, and the message on the diagnostics channel `pooled-browser:event`, with the pool, the number
 * of the call in this process, and the milliseconds since the call began.
 */
export type RunEvent = RunStep & {
  /** Id or name of the pool. */
  pool: string;
  /** Number of the call in this process, from 1. */
  run: number;
  /** Milliseconds since the call began. */
  elapsed: number;
};

/** The events of the clients of `serveProxy` and their facts, by `type`. `name` is the name in the path of the client. */
export interface ProxySteps {
  /** A client waits for a browser. */
  waiting: object;
  /** A browser was leased, after `waited` ms. The URL of its live view contains a secret. */
  leased: { sessionId: string; liveViewUrl?: string; waited: number };
  /** A client uses a browser. */
  connected: { sessionId: string };
  /** A client has disconnected; `isIdle`: the proxy has disconnected it, because it sent no command for `idleTimeout`. */
  disconnected: { sessionId: string; isIdle: boolean };
  /** The lease of `elapsed` ms has ended. */
  released: { sessionId: string; elapsed: number; summary: RunSummary };
  /** A client was refused with this HTTP status. */
  refused: { status: number; reason: string };
}

/** An event of a client of `serveProxy`. */
export type ProxyEvent = {
  [Type in keyof ProxySteps]: { type: Type; name?: string } & ProxySteps[Type];
}[keyof ProxySteps];
