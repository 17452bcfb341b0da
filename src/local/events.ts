/** What the local pool tells `onLog`. Nothing in it is secret. */
export type LocalPoolEvent =
  | { readonly type: 'listening'; readonly baseUrl: string }
  /** An answered request; status 499 when its client went away before. */
  | { readonly type: 'request'; readonly method: string; readonly path: string; readonly status: number }
  | {
      readonly type: 'browser-started';
      readonly pool: string;
      readonly sessionId: string;
      readonly pid: number;
    }
  | { readonly type: 'browser-start-failed'; readonly pool: string; readonly message: string }
  | {
      readonly type: 'browser-destroyed';
      readonly pool: string;
      readonly sessionId: string;
      readonly reason: DestroyReason;
    }
  | NamedEvent
  | { readonly type: 'released'; readonly pool: string; readonly sessionId: string }
  | { readonly type: 'connected'; readonly sessionId: string; readonly protocol: Protocol }
  | { readonly type: 'disconnected'; readonly sessionId: string; readonly protocol: Protocol }
  | {
      readonly type: 'recording-started';
      readonly pool: string;
      readonly sessionId: string;
      readonly replayId: string;
    }
  | {
      readonly type: 'recording-finished';
      readonly pool: string;
      readonly sessionId: string;
      readonly replayId: string;
      readonly reason: RecordingEnd;
      /** Length of the film. */
      readonly milliseconds: number;
      /** Size of the film. */
      readonly bytes: number;
      /** Why there is none. */
      readonly failure?: string;
    }
  | { readonly type: 'closed' };

/**
 * Why a recording ended: a request to stop it, its longest duration, the end of its lease, the end of its browser, a
 * limit of bytes, a disk that is full, a disk that fails otherwise.
 */
export type RecordingEnd =
  'stopped' | 'max-duration' | 'lease-ended' | 'browser-gone' | 'disk-limit' | 'disk-full' | 'disk-failed';

/** What a connection to a leased browser is: a client's, or a person's who watches it. */
export type Protocol = 'cdp' | 'bidi' | 'live-view';

/** An acquire request has to wait, or has a browser; with the name that it asked for. */
export type NamedEvent =
  | { readonly type: 'waiting'; readonly pool: string; readonly name?: string }
  | { readonly type: 'leased'; readonly pool: string; readonly sessionId: string; readonly name?: string };

/**
 * Why a browser was destroyed: a release without reuse, a flush, a request to delete it, no connection for too long,
 * its own end, or the end of the local pool.
 */
export type DestroyReason = 'released' | 'flushed' | 'deleted' | 'inactive' | 'exited' | 'closed';

/** Passes events on; a log that throws must not break the pool. */
export type Log = (event: LocalPoolEvent) => void;

/** The log that never throws. */
export function safeLog(onLog: Log | undefined): Log {
  return (event) => {
    try {
      onLog?.(event);
    } catch {
      // The caller's log is the caller's affair.
    }
  };
}
