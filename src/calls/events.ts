import type { FeatureSteps } from '../features/options.js';
import type { HandoffSteps } from '../features/handoff/options.js';
import type { EventFacts, LeaseSteps } from '../lease/events.js';
import type { StepOf } from '../shared/telemetry.js';
import type { PoolEvent } from '../pool/events.js';
import type { BrowserSession } from '../services/kernel-api.js';
import type { FailedRun, RunSummary } from './run.js';

/** The events of a call and their facts, by `type`. */
export interface RunSteps<Session extends object = BrowserSession>
  extends LeaseSteps<Session, FailedRun<Session>>, FeatureSteps {}

/** An event of a call, without the fields that all events share. The types and their facts are in {@link RunSteps}. */
export type RunStep<Session extends object = BrowserSession> = StepOf<RunSteps<Session>> | PoolEvent;

/**
 * The argument of `onEvent`, and the message on the diagnostics channel `pooled-browser:event`, with the pool, the number
 * of the call in this process, and the milliseconds since the call began.
 */
export type RunEvent<Session extends object = BrowserSession> = RunStep<Session> & EventFacts;

/** The events of the clients of `serveProxy` and their facts, by `type`. `name` is the name in the path of the client. */
export interface ProxySteps {
  /** A client waits for a browser. */
  waiting: object;
  /**
   * A browser was leased, after `waited` ms. The URL of its live view contains a secret. With `keepFile`, `kept` is `'found'` if an earlier
   * proxy has leased the browser, and `'gone'` if it takes the place of such a browser, which could not be used any longer.
   */
  leased: { sessionId: string; liveViewUrl?: string; waited: number; kept?: 'found' | 'gone' };
  /** A client uses a browser. */
  connected: { sessionId: string };
  /** `allowedHosts` refused a host. Emitted once for each host of a lease. */
  'request-refused': { sessionId: string; host: string };
  /** A client asks for a person. The page is at `url`, which contains a secret: everybody with it can use the browser. */
  handoff: { sessionId: string; url: string; message: string };
  /** The hand-off ended. */
  'handoff-answered': HandoffSteps['handoff-answered'];
  /** A client has disconnected. `isIdle`: the proxy has disconnected it, because it sent no command for `idleTimeout`. */
  disconnected: { sessionId: string; isIdle: boolean };
  /** The lease of `elapsed` ms has ended. */
  released: { sessionId: string; elapsed: number; summary: RunSummary<object> };
  /** A client was refused with this HTTP status. */
  refused: { status: number; reason: string };
}

/** An event of a client of `serveProxy`. */
export type ProxyEvent = {
  [Type in keyof ProxySteps]: { type: Type; name?: string } & ProxySteps[Type];
}[keyof ProxySteps];
