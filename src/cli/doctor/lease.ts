import { leaseSession } from '../lease/lease-session.js';
import { openPool } from '../open-pool.js';
import type { Case, Result } from './check.js';

/** A lease without a connection: is there a browser, is it taken back, and can its recordings be listed? */
export async function checkLease({ pool: name, acquireTimeout, signal, ...service }: Case): Promise<Result> {
  if (name === undefined) return { status: 'skipped', detail: 'not checked: it needs a pool' };
  await using pool = openPool(name, service);
  await using lease = await leaseSession(pool, { acquireTimeout, release: 'reuse', replays: 'list', signal });
  const { released, replayStatus, error } = await lease.end();
  if (released === 'failed') {
    return {
      status: 'failed',
      detail: 'a browser was leased, and could not be given back',
      advice: NO_RELEASE,
    };
  }
  if (error) return { status: 'note', detail: `leased and given back; replays: ${error.message}` };
  return { status: 'ok', detail: `leased and given back; replays: ${replayStatus}` };
}

const NO_RELEASE =
  'Check that the service answers POST /browser_pools/{pool}/release, and that the token may use it. ' +
  'The browser stays leased until its inactivity time-out ends it.';
