import type { Answer } from '../http/answer.js';
import { LIVE_AUDIENCES } from '../live/live-view-url.js';
import { LIVE_BODY } from './bodies/live.js';
import { badLink, jwtOf, type PageCall } from './page-call.js';
import { pageAnswer } from './page-answer.js';

/** GET /browsers/{id}/live: the page that `browser_live_view_url` names (interface: Browser session). */
export async function livePage({ id, query, pools }: PageCall): Promise<Answer> {
  const holder = await pools.tokens.verify(jwtOf(query), LIVE_AUDIENCES);
  if (holder?.sessionId !== id) throw badLink();
  // Of a lease that has ended, too: its websocket is refused, and the page says why.
  return pageAnswer({ title: 'Live view', name: 'live', body: LIVE_BODY });
}
