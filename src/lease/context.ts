import type { BrowserUse } from '../clean/browser-use.js';
import type { PoolCore } from '../pool/pool-core.js';
import type { Grant } from '../services/browser-service.js';
import type { BrowserSession } from '../services/kernel-api.js';
import type { AnyStep } from './events.js';
import type { CallSettings } from './options.js';

/** One call, for everything that works for it: plain data and functions. `Step` are the events that it may emit. */
export interface CallContext<Step extends AnyStep = AnyStep> {
  readonly pool: PoolCore;
  /** The options of the heart. */
  readonly settings: CallSettings;
  /** Aborts when the work must end: by the caller's signal, a timeout, or the loss of the browser. */
  readonly signal: AbortSignal;
  /** Ends the work. Only the first reason counts. */
  readonly abort: (reason: unknown) => void;
  readonly emit: (step: Step) => void;
  /** Adds an error to `cleanupErrors`, which never fail the call. */
  readonly addError: (error: Error) => void;
  /** Adds the time of the work to a stage, also if it fails, and traces it. */
  readonly time: <T>(stage: string, work: () => Promise<T>, task?: { readonly index: number }) => Promise<T>;
}

/** A call with a leased browser. Each browser of a call has a context of its own. */
export interface LeaseContext<
  Step extends AnyStep = AnyStep,
  Session extends object = object,
> extends CallContext<Step> {
  readonly pool: PoolCore<Session>;
  readonly grant: Grant<Session>;
  readonly session: Session;
  readonly sessionId: string;
  /** When the service leased the browser, by its clock, in ms. */
  readonly servedAt: number | undefined;
  /** Aborts if the browser is given up before its callback: then no hook of the end is called for it. */
  readonly givenUp: AbortSignal;
  /** The browser must not be leased again: something of this lease is left there. Reports why. */
  readonly preventReuse: (why: string, cause?: unknown) => void;
  /** What the lease does with the browser. */
  readonly use: BrowserUse;
}

/** The part of every callback's argument that does not come from the library. */
export interface LeaseFacts<Session extends object = BrowserSession> {
  /** The leased session. */
  session: Session;
  /** Aborts when the run must end: by the caller's signal, a timeout, or the loss of the browser. */
  signal: AbortSignal;
}

/** The callback of `withPooledBrowser`. It is called once, with a connected browser. */
export type Callback<Handles, Value, Session extends object = BrowserSession> = (
  lease: Handles & LeaseFacts<Session>,
) => Value | PromiseLike<Value>;
