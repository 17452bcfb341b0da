import { verifyGrant, verifyPool, type HowToConnect } from '../connect/verify-connection.js';
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
import type { FailedLease } from './summary.js';

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
    new ConnectedLease(call, browser, await connect(call, browser, plan));
  return opened(call, await acquire(call, open, plan));
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
    verifyGrant(browser.context.pool.idOrName, browser.context.grant, howToConnect(call, plan.connector));
    const lease = new ConnectedLease(call, browser, await connect(call, browser, plan));
    endWithPool(call, lease);
    return lease;
  } catch (error) {
    browser?.giveUp();
    if (browser) await new Lease(call, browser).end({ status: 'failed', error, isDetached: true });
    else call.finish({}, { error });
    throw error;
  }
}

/** Acquires a browser, and opens the lease with it. @param how The connector, unless another program connects. */
async function acquire<Session extends object, Features extends FeatureSet, Opened>(
  call: Call<Session, Features>,
  open: (browser: HeldBrowser<Session>) => Promise<Opened>,
  { connector }: Partial<Pick<ConnectedPlan<unknown, Session, Features>, 'connector'>> = {},
): Promise<Opened> {
  const { pools, hooks } = call;
  const { settings, signal, abort } = call.context;
  /** The last browser that could not be reached. */
  const givenUp: Pick<FailedLease<Session>, 'session' | 'released'> = {};
  let acquisition: Acquisition<Session> | undefined;
  try {
    signal.throwIfAborted();
    const how = howToConnect(call, connector);
    for (const { idOrName, service } of pools) verifyPool(idOrName, service, how);
    await hooks.prepare();
    // Another program, or a new connection, uses the session after its first connection.
    acquisition = new Acquisition(call, { keepAlive: !connector || settings.reconnect !== false });
    if (connector) prepareConnect(pools[0], connector).catch(abort);
    return await reachOne(call, acquisition, { how, open, givenUp });
  } catch (error) {
    call.finish(givenUp, { error });
    throw error;
  } finally {
    acquisition?.dispose();
  }
}

function howToConnect<Session extends object>(
  { context, hooks }: Call<Session>,
  connector: HowToConnect['connector'],
): HowToConnect {
  return { protocol: context.settings.protocol, connector, needsCdp: hooks.needsCdp };
}

/** Leases one browser after another, until one can be reached. */
async function reachOne<Session extends object, Opened>(
  call: Call<Session>,
  acquisition: Acquisition<Session>,
  {
    how,
    open,
    givenUp,
  }: {
    how: HowToConnect;
    open: (browser: HeldBrowser<Session>) => Promise<Opened>;
    givenUp: Pick<FailedLease<Session>, 'session' | 'released'>;
  },
): Promise<Opened> {
  const { emit, time, settings }: CallContext<LeaseStep<Session>> = call.context;
  for (let [attempt, failures] = [1, 0]; ; attempt++) {
    call.browser = { attempt };
    const browser = await time('acquire', async () => hold(call, await acquisition.acquire()));
    const { session, sessionId } = browser.context;
    emit({ type: 'acquired', session, sessionId, attempt });
    let isUntouched = true;
    try {
      verifyGrant(browser.context.pool.idOrName, browser.context.grant, how);
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
      Object.assign(givenUp, { session, released });
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
  const { release } = settings;
  const browser = new HeldBrowser(call.context, acquired, { release, isOwnContextUsed });
  call.browser.sessionId = acquired.grant.id;
  call.hooks.leased(browser.context);
  return browser;
}

async function connect<Handles, Session extends object, Features extends FeatureSet>(
  { hooks }: Call<Session, Features>,
  { context }: HeldBrowser<Session>,
  { connector, addedNames = ['session', 'signal'] }: ConnectedPlan<Handles, Session, Features>,
): Promise<Link<Handles>> {
  return Link.open(context, { connector, additions: () => hooks.connect(context), addedNames });
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
