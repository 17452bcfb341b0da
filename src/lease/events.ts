import type { PoolEvent } from '../pool/events.js';
import type { BrowserSession } from '../services/kernel-api.js';
import type { BrowserLostError, LossReason } from '../shared/lease-errors.js';
import type { AnyStep, StepOf } from '../shared/telemetry.js';
import type { FailedLease } from './summary.js';

export type { AnyStep } from '../shared/telemetry.js';

/** The events of a lease and their facts, by `type`, in their usual order. `Summary` is the result with the parts of the features. */
export interface LeaseSteps<Session extends object = BrowserSession, Summary = FailedLease<Session>> {
  /** `ahead` calls of this process wait before this one for the pool. */
  queued: { ahead: number };
  /**
   * An acquire request is about to be sent. `attempt` is its number, from 1; `waited` the ms since the call began;
   * `timeLeft` the ms until `acquireTimeout`.
   */
  acquiring: { attempt: number; waited: number; timeLeft: number };
  /** The acquire request leased no browser, and another one follows. `error` is missing if the service just had none. */
  waiting: { attempt: number; waited: number; error?: Error };
  /** The pool `to` is asked after the pool `from`. `error` is the reason; without it, the pool had no browser. */
  failover: { from: string; to: string; error?: Error };
  /** A browser was leased. `attempt` is the number of the lease: an unreachable browser is followed by another lease. */
  acquired: { session: Session; sessionId: string; attempt: number };
  /** The library begins to connect. */
  connecting: { sessionId: string; library: string; protocol: string };
  /** Unresponsive pages of an earlier lease were closed. They kept the library from connecting. */
  'unresponsive-pages-closed': { sessionId: string; urls: string[] };
  /** A page is usable. */
  connected: { sessionId: string };
  /** The library could not connect. */
  'connect-failed': { sessionId: string; error: Error };
  /** The callback is about to be called. */
  'callback-started': { sessionId: string };
  /** The callback returned or threw, or the run no longer waits for it. */
  'callback-ended': { sessionId: string; status: 'succeeded' | 'failed' };
  /** The connection was lost, and is not replaced. */
  'browser-lost': { sessionId: string; error: BrowserLostError };
  /** The connection was lost, and will be replaced (option `reconnect`). */
  'connection-dropped': { sessionId: string; reason: LossReason };
  /** A new connection to the same browser is open. */
  reconnected: { sessionId: string };
  /** The session has no connection, and the service will end it after `timeLeft` ms. */
  'session-expiring': { sessionId: string; timeLeft: number };
  /** The browser was cleaned; with `error` if something may be left. The contexts of the lease were closed. */
  'cleaned-up': { sessionId: string; error?: Error };
  /** The call is over; `error` is what it throws. With `awaitRelease: false` the event of the release follows. */
  ended: { status: 'succeeded' | 'failed'; summary: Summary; error?: unknown };
}

/** An event of the heart, without the fields that all events share. */
export type LeaseStep<Session extends object = object> = StepOf<LeaseSteps<Session>> | PoolEvent;

/** The fields that all events share. */
export interface EventFacts {
  /** Id or name of the pool. */
  pool: string;
  /** Name of the lease. */
  name?: string;
  /** Number of the call in this process, from 1. */
  run: number;
  /** Milliseconds since the call began. */
  elapsed: number;
}

export type AnyEvent = AnyStep & EventFacts;
