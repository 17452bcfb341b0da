import type { AcquireEvent } from './acquire-events.js';
import type { BrowserLostError, LossReason } from '../shared/lease-errors.js';
import type { RecordingEvent } from './recording-events.js';
import type { ReplayStatus } from './replay-status.js';
import type { BrowserSession, Replay } from '../service/wire.js';

/** A browser was leased. */
export interface AcquiredEvent {
  type: 'acquired';
  session: BrowserSession;
  /** Which lease of the call this is, from 1: another follows where a browser can't be reached. */
  attempt: number;
}

/** The library begins to connect. */
export interface ConnectingEvent {
  type: 'connecting';
  sessionId: string;
  library: string;
  protocol: string;
}

/** Pages of an earlier lease did not answer and kept the library from connecting: they were closed. */
export interface FrozenPagesClosedEvent {
  type: 'frozen-pages-closed';
  sessionId: string;
  urls: string[];
}

/** A page is usable. */
export interface ConnectedEvent {
  type: 'connected';
  sessionId: string;
}

/** The browser could not be reached: it is given back as bad. */
export interface ConnectFailedEvent {
  type: 'connect-failed';
  sessionId: string;
  error: Error;
}

/** The callback is called. */
export interface CallbackStartedEvent {
  type: 'callback-started';
  sessionId: string;
}

/** The callback returned, threw, or was given up. */
export interface CallbackEndedEvent {
  type: 'callback-ended';
  sessionId: string;
  status: 'ok' | 'failed';
}

/** The browser went away while the callback had it. */
export interface BrowserLostEvent {
  type: 'browser-lost';
  sessionId: string;
  error: BrowserLostError;
}

/** The connection ended, and is to be replaced (option `reconnect`). Nothing that was under way is repeated. */
export interface ConnectionDroppedEvent {
  type: 'connection-dropped';
  sessionId: string;
  reason: LossReason;
}

/** Another connection to the same browser stands. */
export interface ReconnectedEvent {
  type: 'reconnected';
  sessionId: string;
}

/** Nothing is connected, and the service is about to end the session for it. */
export interface SessionExpiringEvent {
  type: 'session-expiring';
  sessionId: string;
  /** Milliseconds left. */
  timeLeft: number;
}

/** Pages and contexts of the lease were closed; with an error, not all of them. */
export interface SweptEvent {
  type: 'swept';
  sessionId: string;
  error?: Error;
}

/** The recordings of this lease were listed; with `replays: 'record'` again, after the wait for their films. */
export interface ReplaysEvent {
  type: 'replays';
  sessionId: string;
  replays: readonly Replay[];
  status: ReplayStatus;
  error?: Error;
}

/** A step of a run. */
export type RunStep =
  | AcquireEvent
  | AcquiredEvent
  | ConnectingEvent
  | FrozenPagesClosedEvent
  | ConnectedEvent
  | ConnectFailedEvent
  | CallbackStartedEvent
  | CallbackEndedEvent
  | BrowserLostEvent
  | ConnectionDroppedEvent
  | ReconnectedEvent
  | SessionExpiringEvent
  | RecordingEvent
  | SweptEvent
  | ReplaysEvent;

/**
 * What `onEvent` gets, and the diagnostics channel `pooled-browser:event`: a step, told apart by its `type`,
 * with the pool, the run's number in this process, and the milliseconds since the run began.
 */
export type RunEvent = RunStep & { pool: string; run: number; elapsed: number };
