import { optional, text } from '../../shared/options.js';
import { EMPTY, HttpFault, notFound, type Answer } from '../http/answer.js';
import { readBody } from '../http/request.js';
import { checkDashboardLink } from '../pages/dashboard-page.js';
import type { PageCall } from '../pages/page.js';
import type { ShownPages } from './shown-pages.js';

/** GET /dashboard/thumbnail: the last picture of a browser. */
export function thumbnail(call: PageCall & { shown: ShownPages }): Answer {
  checkDashboardLink(call);
  const { pools, query, shown } = call;
  const sessionId = query.get('session_id') ?? '';
  const found = pools.poolOfSession(sessionId).find(sessionId);
  const picture = found && shown.thumbnailOf(found.chromium);
  if (!picture) throw notFound('There is no picture of this browser yet.');
  const { jpeg } = picture;
  return { status: 200, content: { type: 'image/jpeg', size: jpeg.length, data: jpeg } };
}

const endRequest = {
  session_id: text(),
  /** The lease that a person sees. Missing for an idle browser. */
  lease_id: optional(text()),
};

/** POST /dashboard/release: ends a lease; its browser stays in the pool. */
export async function releaseLease(call: PageCall): Promise<Answer> {
  const { pool, sessionId } = await findSeen(call);
  if (pool.release(sessionId, true)) return EMPTY;
  throw stateChanged();
}

/** POST /dashboard/destroy: destroys a browser, leased or idle. */
export async function destroyBrowser(call: PageCall): Promise<Answer> {
  const { pool, sessionId } = await findSeen(call);
  pool.delete(sessionId);
  return EMPTY;
}

/** Finds the browser in the state in which the person sees it: a later lease of its session must not end. */
async function findSeen(call: PageCall) {
  checkDashboardLink(call);
  const { session_id: sessionId, lease_id: leaseId } = await readBody(call.request, endRequest, 'refuse');
  const pool = call.pools.poolOfSession(sessionId);
  if (pool.lease(sessionId)?.id !== leaseId) throw stateChanged();
  return { pool, sessionId };
}

function stateChanged(): HttpFault {
  const message = 'This lease has ended meanwhile, or another one has begun. Nothing was changed.';
  return new HttpFault(409, 'conflict', message);
}
