import type { BrowserSession } from '../services/kernel-api.js';

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
