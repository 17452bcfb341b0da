import type { RetryOptions } from './retry-rules.js';
import type { ContextChoice } from '../connect/connector.js';
import type { Protocol } from '../connect/protocol.js';
import type { RecordingOptions } from './recording-options.js';
import type { BrowserPool } from '../service/browser-pool.js';
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
  /**
   * Name of the lease: 1 to 255 of letters, digits, `.`, `_`, `-`, unique among those in use (interface: endpoint 2).
   * It makes the acquire safe to repeat: where an answer was lost, asking again can't lease a second browser, but fails
   * with `LeaseNameTakenError`. Default: none.
   */
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
  /**
   * `'list'`: the links of this lease's recordings, as they are at its end; `'off'`: don't ask; `'record'` (beyond the
   * given interface): have the service record the lease, and wait until the film is written. The browser waits for
   * none of it: the recording starts while it is connected to, and the wait for the film comes after its release. A
   * service that does not record makes an event `recording-unavailable`, never a failed run. Default: `'list'`.
   */
  replays?: 'list' | 'record' | 'off' | undefined;
  /** How long stopping, listing and the wait for the film may hold up the end in all, in ms. Default: 10,000. */
  replaysTimeout?: number | undefined;
  /** How to record with `replays: 'record'`. Default: as the service does. */
  recording?: RecordingOptions | undefined;
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

/** Options of a lease that outlives a function. */
export interface HeldLeaseOptions<
  Driver extends object = object,
  P extends Protocol = Protocol,
> extends LeaseOptions<Driver, P> {
  /**
   * Replace a connection that ended before its time, as long as the session lasts. Nothing is ever repeated: what was
   * under way fails. Default: `false`, the browser is lost with its connection.
   */
  reconnect?: boolean | undefined;
  /**
   * With `reconnect`: replace it at once, because a session without any connection expires after its `timeout_seconds`
   * (beyond the given interface: activity). `false` waits until the browser is next used. Default: `true`.
   */
  keepAlive?: boolean | undefined;
}

/** Options for taking up a detached lease: there is nothing to acquire. */
export type AttachOptions<Driver extends object = object, P extends Protocol = Protocol> = Omit<
  HeldLeaseOptions<Driver, P>,
  'name' | 'tags' | 'startUrl' | 'acquireTimeout' | 'pollTimeout' | 'retry' | 'connectAttempts'
> & {
  /** The pool of the lease. Default: the one of that id or name at the service that the environment names. */
  pool?: BrowserPool | string | undefined;
};

/** Options of a run: those of its lease, and the limit of the callback. */
export interface RunOptions<
  Driver extends object = object,
  P extends Protocol = Protocol,
> extends LeaseOptions<Driver, P> {
  /** Limit of the callback, in ms. Default: none. */
  timeout?: number | undefined;
  /**
   * `false`: end the run as soon as the release is under way, a round trip earlier; `released` is then `'pending'`.
   * What becomes of it is told by the event `released` or `release-failed`. It is owed all the same: the end of the
   * process sees to it, and `pool.close()` waits for it. Default: `true` (beyond the given interface).
   */
  awaitRelease?: boolean | undefined;
}
