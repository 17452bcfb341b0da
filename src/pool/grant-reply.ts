import type { Grant, LeaseRequest } from '../services/browser-service.js';
import type { Answer } from './gate.js';
import type { ReleaseTicket } from './tickets.js';

/** A browser that an acquire request leased, and how to release it. */
export interface Granted<Session extends object> {
  readonly grant: Grant<Session>;
  /** The request that leased it. */
  readonly lease: LeaseRequest;
  /** Undefined if the end of the connection releases the browser. */
  readonly ticket: ReleaseTicket | undefined;
  /** Whether the service showed the mark of the lease in its response. */
  readonly isMarkShown: boolean;
  /** Time of the response by the service's clock, in ms, in steps of a second. Undefined if the service does not send it. */
  readonly servedAt: number | undefined;
}

/**
 * The outcome of one acquire request:
 * - `granted`; `none`: no browser became available in the requested time;
 * - `unavailable`: refused, because none is available now; `refused`: no later request can succeed;
 * - `released`: one was leased in a broken response, and is being released;
 * - `unknown`: nobody can say whether one was leased.
 */
export type AcquireOutcome<Session extends object> =
  | { readonly kind: 'granted'; readonly granted: Granted<Session> }
  | { readonly kind: 'none' }
  | {
      readonly kind: 'unavailable' | 'refused' | 'released' | 'unknown';
      readonly error: Error;
      /** The service itself has a problem. */
      readonly isOutage: boolean;
    };

/** The answer to one acquire request, for the gate of its pool and for its caller. */
export interface GrantReply extends Answer {
  readonly outcome: AcquireOutcome<object>;
  /** The service let the request wait for about as long as it was asked to. */
  readonly hasWaited: boolean;
}
