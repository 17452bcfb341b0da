import { LinkedAbort } from '../shared/abort.js';
import type { BrowserPool } from '../service/browser-pool.js';
import { countersOf } from '../service/pool-stats.js';
import type { BrowserSession } from '../service/wire.js';
import type { AcquirePlan } from './acquire-plan.js';
import { PollLoop } from './poll-loop.js';

/**
 * Asks the pool again and again, under one deadline, until it grants a browser.
 * Whoever gets the session owes its release; one that is granted after this has thrown is given back by the pool.
 */
export async function acquireSession(pool: BrowserPool, plan: AcquirePlan): Promise<BrowserSession> {
  const limit = new LinkedAbort(plan.signal, plan.acquireTimeout);
  try {
    return await countersOf(pool).countCall(() => new PollLoop(pool, plan, limit).run());
  } finally {
    limit.dispose();
  }
}
