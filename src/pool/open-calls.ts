import { onAbort } from '../shared/abort.js';
import { PoolClosedError } from '../shared/service-errors.js';
import { clientOf } from './client.js';
import type { PoolWithInternals } from './pool-internals.js';

/**
 * Begins a call that uses the pool: `pool.close()` ends the call, and waits until the returned function is called.
 *
 * @param end Ends the call. Each call receives an error of its own, so that `runOf` returns its run. Called at once if the pool
 *   is closed already.
 */
export function beginCall(pool: PoolWithInternals, end: (error: PoolClosedError) => void): () => void {
  let leave!: () => void;
  clientOf(pool).background.track(new Promise<void>((resolve) => (leave = resolve)));
  const { signal } = closingOf(pool);
  const stopListening = onAbort(signal, () => end(new PoolClosedError({ pool: pool.idOrName })));
  return () => {
    stopListening();
    leave();
  };
}

/** Ends all calls that use the pool. Resolves when they have released their browsers, and no request is open. */
export async function endCalls(pool: PoolWithInternals): Promise<void> {
  closingOf(pool).abort();
  await clientOf(pool).background.settled();
}

/** Aborts when the pool is closed. */
export function closingOf(pool: PoolWithInternals): AbortController {
  const closing = pools.get(pool) ?? new AbortController();
  pools.set(pool, closing);
  return closing;
}

const pools = new WeakMap<PoolWithInternals, AbortController>();
