import type { Lease } from './lease.js';
import type { LeaseFacts } from './callback.js';
import type { DetachedLease } from './detached-lease.js';
import type { RunTail } from './run.js';

/** A leased, connected browser that is given back by `release`, or at the end of the block with `await using`. */
export type PooledBrowser<Handles> = Handles &
  LeaseFacts &
  AsyncDisposable & {
    /** Where a person can watch, and take over; holds a jwt. Only for browsers that are not headless. */
    readonly liveViewUrl: string | undefined;
    /**
     * Calls `fn` with the library's browser and page over the present connection, and waits for one where the last one
     * ended (option `reconnect`).
     *
     * @throws What `fn` throws; `ConnectionDroppedError` when the connection ends meanwhile: nothing is repeated;
     *   the reason of `signal` once the lease is lost.
     */
    use<Value>(fn: (handles: Handles) => Value | PromiseLike<Value>): Promise<Value>;
    /**
     * Replaces the connection, within the same lease; `browser` and `page` of this object are then those of the new
     * one. Contexts that were made over the old connection may be gone, and the browser is not reused afterwards.
     *
     * @throws `BrowserLostError` when the session is over.
     */
    reconnect(): Promise<void>;
    /**
     * Disconnects and leaves the browser leased, for another process to take up with `attachBrowser` before the
     * session expires. Its release is then owed there.
     */
    detach(): Promise<DetachedLease>;
    /**
     * Closes what the lease opened, disconnects, gives the browser back, and tells what is left: replays, times.
     * However often it is called, it happens once. Never rejects.
     */
    release(): Promise<RunTail>;
  };

/** A lease as the caller holds it: its handles are always those of the present connection. */
export function pooledBrowser<Handles>(lease: Lease<Handles>): PooledBrowser<Handles> {
  const { session, signal, attempt } = lease;
  const release = () => lease.end({ status: signal.aborted ? 'failed' : 'ok', error: signal.reason });
  const browser = {
    session,
    signal,
    attempt,
    use: <Value>(fn: (handles: Handles) => Value | PromiseLike<Value>) => lease.use(fn),
    reconnect: () => lease.reconnect(),
    detach: () => lease.detach(),
    release,
    [Symbol.asyncDispose]: async () => void (await release()),
  };
  for (const name of Object.keys(lease.handles as object)) {
    const get = () => lease.handles[name as keyof Handles];
    Object.defineProperty(browser, name, { get, enumerable: true });
  }
  // Not enumerable: inspect and JSON would show its jwt.
  Object.defineProperty(browser, 'liveViewUrl', { get: () => session.browser_live_view_url });
  return browser as unknown as PooledBrowser<Handles>;
}
