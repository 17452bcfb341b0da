import type { Answer } from '../http/answer.js';
import { DASHBOARD_BODY } from './bodies/dashboard.js';
import { badLink, jwtOf, type PageCall } from './page-call.js';
import { pageAnswer } from './page-answer.js';

/** GET /: the page that `LocalPool.dashboardUrl` names. */
export async function dashboardPage({ query, pools }: PageCall): Promise<Answer> {
  if (!(await pools.tokens.verifyDashboard(jwtOf(query)))) throw badLink();
  return pageAnswer({ title: 'Pools', name: 'dashboard', body: DASHBOARD_BODY });
}
