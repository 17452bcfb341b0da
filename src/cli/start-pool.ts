import { raceAbort } from '../shared/abort.js';
import type { LocalPool } from '../local/local-pool.js';
import type { LocalPoolOptions } from '../local/options.js';

/** Starts a local pool, unless the signal aborts first. */
export async function startPool(options: LocalPoolOptions, signal: AbortSignal): Promise<LocalPool> {
  const { startLocalPool } = await import('../local/start-local-pool.js');
  signal.throwIfAborted();
  return raceAbort(startLocalPool(options), signal, (late) => void late.close());
}
