import type { RecordingEnd } from '../recorder/recording-end.js';

/** An event of the local pool, for `onLog`; `type` names it. Events contain no secrets. */
export type LocalPoolEvent =
  | { readonly type: 'listening'; readonly baseUrl: string }
  /** A request was answered. The status is 499 when the client closed its connection before the response. */
  | { readonly type: 'request'; readonly method: string; readonly path: string; readonly status: number }
  | (OfSession & { readonly type: 'browser-started'; readonly pid: number })
  | { readonly type: 'browser-start-failed'; readonly pool: string; readonly message: string }
  | (OfSession & { readonly type: 'browser-destroyed'; readonly reason: DestroyReason })
  /** An acquire request waits. `name` is the name of the requested lease. */
  | { readonly type: 'waiting'; readonly pool: string; readonly name?: string }
  | (OfSession & { readonly type: 'leased'; readonly name?: string })
  | (OfSession & { readonly type: 'released'; readonly name?: string })
  | { readonly type: 'connected'; readonly sessionId: string; readonly protocol: Protocol }
  | { readonly type: 'disconnected'; readonly sessionId: string; readonly protocol: Protocol }
  | (OfSession & { readonly type: 'recording-started'; readonly replayId: string })
  | (OfSession & {
      readonly type: 'recording-finished';
      readonly replayId: string;
      readonly reason: RecordingEnd;
      /** Length of the video. */
      readonly milliseconds: number;
      /** Size of the video. */
      readonly bytes: number;
      /** Why the video or its page could not be written. */
      readonly failure?: string;
    })
  | { readonly type: 'closed' };

/** @inline */
interface OfSession {
  /** Name of the pool. */
  readonly pool: string;
  readonly sessionId: string;
}

/**
 * The use of a connection to a leased browser.
 *
 * @inline
 */
export type Protocol = 'cdp' | 'bidi' | 'live-view';

export const PROTOCOL_NAMES: Readonly<Record<Protocol, string>> = {
  cdp: 'CDP',
  bidi: 'WebDriver BiDi',
  'live-view': 'live view',
};

/**
 * Why a browser was destroyed: a release without reuse, its wear or a request that needs another one (`replaced`), a flush, a DELETE
 * request, no connection for too long, the end of its process, the end of the local pool.
 *
 * @inline
 */
export type DestroyReason =
  'released' | 'replaced' | 'flushed' | 'deleted' | 'inactive' | 'exited' | 'closed';

export type Log = (event: LocalPoolEvent) => void;

/** Numbers of browsers by state, and totals since the start. */
export interface LocalPoolStats {
  /** Browsers that are ready to be leased. */
  readonly idle: number;
  /** Browsers that are leased. */
  readonly leased: number;
  /** Browsers that are starting. */
  readonly starting: number;
  /** Acquire requests that are waiting. */
  readonly waiting: number;
  /** Leases granted. Leases whose response could not be delivered do not count. */
  readonly granted: number;
  /** Leases released, with or without reuse. */
  readonly released: number;
  /** Browsers destroyed, for any reason. */
  readonly destroyed: number;
  /** Leases that ended because nothing was connected for `timeoutSeconds`. */
  readonly expired: number;
}
