import { environment } from '../shared/environment.js';
import { InvalidOptionError } from '../shared/errors.js';
import { BrowserPool } from '../service/browser-pool.js';

const shared = new Map<string, BrowserPool>();

/** The pool itself, or the one of that id or name at the service that the environment names, shared by all calls. */
export function resolvePool(pool: BrowserPool | string): BrowserPool {
  if (pool instanceof BrowserPool) return pool;
  if (typeof pool !== 'string') {
    throw new InvalidOptionError('pool', 'pool must be a BrowserPool, or the id or name of one.');
  }
  const key = JSON.stringify([pool, environment.baseUrl(), environment.accessToken()]);
  const known = shared.get(key) ?? new BrowserPool(pool);
  shared.set(key, known);
  return known;
}
