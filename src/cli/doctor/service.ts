import { PoolConnectionError, PoolServiceError } from '../../shared/service-errors.js';
import { environment } from '../../shared/environment.js';
import { checkBaseUrl } from '../../service/base-url.js';
import { ANY_POOL, NO_ADDRESS, openPool } from '../open-pool.js';
import type { Case, Result } from './check.js';

/** Milliseconds until a service that says nothing counts as out of reach. */
const PATIENCE = 10_000;

export function checkAddress({ baseUrl = environment.baseUrl() }: Case): Result {
  if (baseUrl === undefined) return { status: 'failed', detail: 'none is known', advice: NO_ADDRESS };
  return { status: 'ok', detail: checkBaseUrl(baseUrl).href };
}

/** Any answer will do, and no token is shown for it. */
export async function checkReachable({ baseUrl = environment.baseUrl(), signal }: Case): Promise<Result> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]);
  try {
    const { status, body } = await fetch(baseUrl!, { redirect: 'manual', signal: limit });
    await body?.cancel();
    return { status: 'ok', detail: `it answers (status ${status})` };
  } catch (error) {
    // What went wrong stands in the cause; of itself fetch only says that it failed.
    const cause = (error as Error).cause ?? error;
    const { message, code } = cause as NodeJS.ErrnoException;
    throw new PoolConnectionError(message || code || 'no answer', 'ERR_POOL_UNREACHABLE', { cause });
  }
}

/** Asks for the replays of a session that does not exist: a token that counts gets a 404, or an empty list. */
export async function checkToken(on: Case): Promise<Result> {
  await using pool = openPool(ANY_POOL, on);
  try {
    await pool.replays('pooled-browser-doctor', { signal: on.signal });
  } catch (error) {
    if (!(error instanceof PoolServiceError && error.status === 404)) throw error;
  }
  return { status: 'ok', detail: 'accepted' };
}

/** Statuses of a service that keeps no records of its pools, or has no such pool. */
const NO_RECORD = [404, 405, 501];

/** The pool's record is beyond the given interface: a service without one leaves it to the lease to find out. */
export async function checkPool(on: Case): Promise<Result> {
  if (on.pool === undefined)
    return { status: 'skipped', detail: 'none was named: pooled-browser doctor POOL' };
  await using pool = openPool(on.pool, on);
  try {
    const record = await pool.describe({ signal: on.signal });
    const { available_count: idle, acquired_count: leased, browser_pool_config: { size } = {} } = record;
    const counts = Object.entries({ idle, leased, size }).filter(([, count]) => count !== undefined);
    const told = counts.map(([name, count]) => `${name} ${count}`).join(', ');
    return { status: 'ok', detail: `${on.pool}: ${told || 'it exists'}` };
  } catch (error) {
    if (!(error instanceof PoolServiceError && NO_RECORD.includes(error.status))) throw error;
    const detail = `the service has no record of ${on.pool}: unless it keeps none, there is no such pool`;
    return { status: 'note', detail };
  }
}
