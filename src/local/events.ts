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
  | { readonly type: 'connected'; readonly sessionId: string; readonly protocol: 'cdp' | 'bidi' }
  | { readonly type: 'disconnected'; readonly sessionId: string; readonly protocol: 'cdp' | 'bidi' }
  | { readonly type: 'closed' };

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
