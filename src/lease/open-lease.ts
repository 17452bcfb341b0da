import { verifyGrant, verifyPool } from '../connect/verify-connection.js';
import { refusesUpgrade } from '../net/status.js';
import { ConnectError } from '../shared/lease-errors.js';
import { Acquisition, joinLease, type Acquired } from './acquire.js';
import { Call } from './call.js';
import type { CallContext } from './context.js';
import type { LeaseStep } from './events.js';
import type { FeatureSet } from './feature.js';
import { HeldBrowser } from './held-browser.js';
import { ConnectedLease, Lease } from './lease.js';
import { Link, prepareConnect } from './link.js';
import type { ConnectedPlan, Handover, LeasePlan } from './plan.js';

/**
 * Acquires a browser and connects to it. A browser that can't be reached is released for destruction, and another one is
 * leased. After a failure nothing stays leased, and the call has ended:
 *
 * ```
 * acquiring ─▶ leased ─▶ connected ─▶ ending ─▶ ended
 *     ▲           │
 *     └───────────┘ the browser can't be reached
 * ```
 *
 * What a lease does besides is the work of its features.
 */
export async function openLease<Handles, Session extends object, Features extends FeatureSet>(
  plan: ConnectedPlan<Handles, Session, Features>,
): Promise<ConnectedLease<Handles, Session, Features>> {
  const call = new Call(plan);
  const open = async (browser: HeldBrowser<Session>) =>
    new ConnectedLease(call, browser, await Link.open(browser.context, plan, call.hooks));
  return opened(call, await acquire(call, open));
}

/** Acquires a browser without connecting to it, for another program. After a failure nothing stays leased. */
export async function openSession<Session extends object, Features extends FeatureSet>(
  plan: LeasePlan<Session, Features>,
): Promise<Lease<Session, Features>> {
  const call = new Call(plan);
  return opened(call, await acquire(call, async (browser) => new Lease(call, browser)));
}

/** Continues a lease of another process. After a failure, that lease is unchanged. */
export async function attachLease<Handles, Session extends object, Features extends FeatureSet>(
  plan: ConnectedPlan<Handles, Session, Features>,
  { features: saved, ...handover }: Handover<Session>,
): Promise<ConnectedLease<Handles, Session, Features>> {
  const call = new Call(plan);
  let browser: HeldBrowser<Session> | undefined;
  try {
    call.hooks.restore(saved);
    await call.hooks.prepare();
    browser = hold(call, joinLease(call.pools[0], handover));
    // The lease before it may have used the browser's own context.
    browser.context.onOwnContextUsed();
    verifyGrant(call.pool.idOrName, browser.context.grant, call.how);
    const lease = new ConnectedLease(call, browser, await Link.open(browser.context, plan, call.hooks));
    endWithPool(call, lease);
    return lease;
  } catch (error) {
    browser?.giveUp();
    if (browser) await new Lease(call, browser).end({ status: 'failed', error, isDetached: true });
    else call.finish({}, { error });
    throw error;
  }
}

/** Acquires a browser, and opens the lease with it. */
async function acquire<Session extends object, Opened>(
  call: Call<Session>,
  open: (browser: HeldBrowser<Session>) => Promise<Opened>,
): Promise<Opened> {
  const { pools, hooks, plan, how } = call;
  const { settings, signal, abort } = call.context;
  let acquisition: Acquisition<Session> | undefined;
  try {
    signal.throwIfAborted();
    for (const { idOrName, service } of pools) verifyPool(idOrName, service, how);
    await hooks.prepare();
    // Another program, or a new connection, uses the session after its first connection.
    acquisition = new Acquisition(call, { keepAlive: !plan.connector || settings.reconnect !== false });
    if (plan.connector) prepareConnect(pools[0], plan.connector).catch(abort);
    return await reachOne(call, acquisition, open);
  } catch (error) {
    call.finish(call.givenUp, { error });
    throw error;
  } finally {
    acquisition?.dispose();
  }
}

/** Leases one browser after another, until one can be reached. */
async function reachOne<Session extends object, Opened>(
  call: Call<Session>,
  acquisition: Acquisition<Session>,
  open: (browser: HeldBrowser<Session>) => Promise<Opened>,
): Promise<Opened> {
  const { emit, time, settings }: CallContext<LeaseStep<Session>> = call.context;
  for (let [attempt, failures] = [1, 0]; ; attempt++) {
    call.browser = { attempt };
    const browser = await time('acquire', async () => hold(call, await acquisition.acquire()));
    const { session, sessionId } = browser.context;
    emit({ type: 'acquired', session, sessionId, attempt });
    let isUntouched = true;
    try {
      verifyGrant(call.pool.idOrName, browser.context.grant, call.how);
      isUntouched = false;
      await browser.cleanFirst();
      const opened = await open(browser);
      browser.wasReached = true;
      acquisition.served();
      return opened;
    } catch (error) {
      browser.giveUp();
      const { endsWith } = browser;
      const choice = isUntouched ? 'reuse' : 'destroy';
      const released = await browser.release(endsWith === 'nothing' ? 'leave' : choice);
      call.givenUp = { session, released };
      if (!(error instanceof ConnectError)) throw error;
      // Where the connection is the lease, none was leased.
      if (endsWith !== 'request' && isRefusal(error)) acquisition.refuse(error);
      else if (++failures >= settings.connectAttempts) throw error;
    }
  }
}

function hold<Session extends object>(
  call: Call<Session>,
  acquired: Acquired<Session>,
): HeldBrowser<Session> {
  const { settings, isOwnContextUsed = settings.context === 'default' } = call.plan;
  const how = { release: settings.release, isOwnContextUsed };
  const browser = new HeldBrowser(call.context, acquired, how);
  call.browser.sessionId = acquired.grant.id;
  call.hooks.leased(browser.context);
  return browser;
}

/** The features begin their part before the callback. */
async function opened<Opened extends Lease<Session>, Session extends object>(
  call: Call<Session>,
  lease: Opened,
): Promise<Opened> {
  endWithPool(call, lease);
  try {
    await call.hooks.opened(lease.context, lease.part);
    return lease;
  } catch (error) {
    await lease.end({ status: 'failed', error });
    throw error;
  }
}

function endWithPool<Session extends object>(call: Call<Session>, lease: Lease<Session>): void {
  call.onPoolClosed((error) => void lease.end({ status: 'failed', error }));
}

/** No browser is available now, or the service can't be reached. */
function isRefusal({ status, unreachedBy }: ConnectError): boolean {
  return unreachedBy !== undefined || refusesUpgrade(status ?? 0);
}
