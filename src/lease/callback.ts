import type { BrowserSession } from '../service/wire.js';

/** What every callback gets besides its library's browser and page. */
export interface LeaseFacts {
  /** The leased session. */
  session: BrowserSession;
  /** Aborts when the run must end: by the caller's signal, the time limit, or the loss of the browser. */
  signal: AbortSignal;
  /** Which lease of this call it is, from 1: another is taken where a browser can't be reached. */
  attempt: number;
}

/** The callback: called once, with a connected browser. */
export type Callback<Handles, Value> = (lease: Handles & LeaseFacts) => Value | PromiseLike<Value>;
