import { verifyGrant } from './verify-connection.js';
import type { PoolCore } from '../pool/pool-core.js';
import { ConnectError, LeaseExpiredError } from '../shared/lease-errors.js';
import { NO_REQUESTS } from './acquire.js';
import { Call } from './call.js';
import type { FeatureSet } from './feature.js';
import { HeldBrowser, type Held } from './held-browser.js';
import { ConnectedLease } from './lease.js';
import { Link } from './link.js';
import type { ConnectedPlan, DetachedState } from './plan.js';

/** Continues a lease of another process. After a failure, that lease is unchanged, unless its time is over. */
export async function attachLease<Handles, Session extends object, Features extends FeatureSet>(
  plan: ConnectedPlan<Handles, Session, Features>,
  { features: saved, left, ...detachedState }: DetachedState<Session>,
): Promise<ConnectedLease<Handles, Session, Features>> {
  const call = new Call(plan);
  const [pool] = call.pools;
  let browser: HeldBrowser<Session> | undefined;
  try {
    call.hooks.restore(saved);
    await call.hooks.prepare();
    browser = new HeldBrowser(call, joinLease(pool, detachedState));
    call.hooks.leased(browser.context);
    browser.continue(left);
    verifyGrant(pool.idOrName, browser.context.grant, call.how);
    const lease = new ConnectedLease(call, browser, await Link.open(browser.context, plan.connector, call));
    call.endWithPool(lease);
    return lease;
  } catch (error) {
    // A lease whose time is over is not left.
    const isLeft = !(error instanceof LeaseExpiredError);
    const held = browser && { session: browser.context.session, released: await browser.abandon(isLeft) };
    call.finish({ ...held, ...NO_REQUESTS, pool: pool.idOrName }, { error });
    throw error;
  }
}

/**
 * The browser of a lease that another process began.
 *
 * @throws ConnectError if another lease of this process uses the browser.
 */
function joinLease<Session extends object>(
  pool: PoolCore<Session>,
  detachedState: Omit<DetachedState<Session>, 'features' | 'left'>,
): Held<Session> {
  const { id: sessionId } = detachedState.grant;
  // Built here: the token must not be sent where a record from outside wants it.
  const own = pool.ticketOf(sessionId, detachedState.lease, detachedState.isMarkShown);
  const ticket = own && { ...own, isShared: true };
  const free = pool.gate.join(sessionId, { limit: pool.limit, isAlone: !ticket });
  if (free)
    return { ...detachedState, pool, ticket, servedAt: undefined, free, counts: NO_REQUESTS, attempt: 0 };
  const message = 'Another lease of this process uses the browser: release that lease first.';
  throw new ConnectError(message, { sessionId });
}
