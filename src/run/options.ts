import type { RetryOptions } from '../acquire/retry-rules.js';
import type { ContextChoice } from '../connect/connector.js';
import type { Protocol } from '../connect/protocol.js';
import type { BrowserSession } from '../service/wire.js';
import type { RunEvent } from './events.js';

/** How a lease ended, for a `release` function to decide by. */
export interface LeaseOutcome {
  /** `'failed'` when the callback threw, timed out, or lost its browser. */
  status: 'ok' | 'failed';
  /** What it threw. */
  error?: unknown;
  /** The browser answers, and all that this lease opened is closed. */
  healthy: boolean;
  session: BrowserSession;
}

/** `'reuse'`: back to the pool as it is; `'destroy'`; `'leave'`: not given back at all. */
export type ReleaseChoice = 'reuse' | 'destroy' | 'leave';

/** Options of a lease. Times are milliseconds. */
export interface LeaseOptions<Driver extends object = object, P extends Protocol = Protocol> {
  /** Name of the lease: 1 to 255 of letters, digits, `.`, `_`, `-` (interface: endpoint 2). Default: none. */
  name?: string | undefined;
  /** Up to 50 key-value pairs (interface: endpoint 2). Default: none. */
  tags?: Readonly<Record<string, string>> | undefined;
  /** URL that the service opens in the browser, best effort (interface: endpoint 2). Default: the pool's. */
  startUrl?: string | undefined;
  /** How long in all to wait for a browser, in ms. Default: 300,000. */
  acquireTimeout?: number | undefined;
  /**
   * How long each acquire request asks to wait, in ms, rounded up to whole seconds
   * (interface: acquire_timeout_seconds). `false` leaves it to the service. Default: 25,000.
   */
  pollTimeout?: number | false | undefined;
  /** Back-off between tries that did not wait as asked. */
  retry?: RetryOptions | undefined;
  /** From the lease to a usable page, in ms. Default: 30,000. */
  connectTimeout?: number | undefined;
  /** Leases to try; a browser that can't be reached is given back as bad. Default: 2. */
  connectAttempts?: number | undefined;
  /** `'cdp'`, or with Puppeteer `'bidi'`. Default: `'cdp'`. */
  protocol?: P | undefined;
  /** `'default'`: the browser's own context, with its profile; `'new'`: a fresh one. Default: `'default'`. */
  context?: ContextChoice | undefined;
  /**
   * `'auto'`: reuse when the browser is healthy and swept clean, destroy otherwise; or one of the choices,
   * or a function that makes it. Default: `'auto'` (beyond the given interface: release).
   */
  release?: 'auto' | ReleaseChoice | ((outcome: LeaseOutcome) => ReleaseChoice) | undefined;
  /** How long to try to give the browser back, in ms; an abort does not shorten it. Default: 10,000. */
  releaseTimeout?: number | undefined;
  /** `'list'`: the links of this lease's recordings; `'off'`: don't ask. Default: `'list'`. */
  replays?: 'list' | 'off' | undefined;
  /** How long the listing may hold up the end, in ms. Default: 10,000. */
  replaysTimeout?: number | undefined;
  /** The automation library's own connect options. Default: none. */
  driver?: Driver | undefined;
  /**
   * Starts a small process that gives the browser back should this one be killed without a word (SIGKILL, out of
   * memory). Without it every other end of the process is covered. Default: `false`.
   */
  watch?: boolean | undefined;
  /** Ends everything, at any point; the promise rejects with the signal's reason. Default: none. */
  signal?: AbortSignal | undefined;
  /** Told of every step. Default: none. */
  onEvent?: ((event: RunEvent) => void) | undefined;
}

/** Options of a run: those of its lease, and the limit of the callback. */
export interface RunOptions<
  Driver extends object = object,
  P extends Protocol = Protocol,
> extends LeaseOptions<Driver, P> {
  /** Limit of the callback, in ms. Default: none. */
  timeout?: number | undefined;
}
