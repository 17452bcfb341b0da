import { isSameSecret } from '../../net/loopback-server.js';
import { newLinkToken } from '../../shared/ids.js';
import { optional, text } from '../../shared/options.js';
import type { FeatureContext, LocalFeature } from '../feature.js';
import { EMPTY, HttpFault, notFound, type Answer } from '../http/answer.js';
import { invalidLink, tokenInQuery, type PageCall, type PageRoute } from '../http/page.js';
import { readBody } from '../http/request.js';
import type { Upgrade } from '../../net/accept-websocket.js';
import { DashboardFeed } from './dashboard-feed.js';
import { DASHBOARD_STYLE, dashboardPage } from './dashboard-page.js';

/** The dashboard: a page with all browsers, leases and recordings. */
export class Dashboard implements LocalFeature {
  readonly url: string;
  readonly styles = { dashboard: DASHBOARD_STYLE };
  readonly #context: FeatureContext;
  readonly #feed: DashboardFeed;
  readonly #token = newLinkToken();

  constructor(context: FeatureContext) {
    this.#context = context;
    this.#feed = new DashboardFeed(context);
    this.url = `http://${context.host}/?token=${this.#token}`;
  }

  readonly pages = {
    'GET /': this.#authorized(dashboardPage),
    'GET /dashboard/thumbnail': this.#authorized((call) => this.#thumbnail(call)),
    'POST /dashboard/release': this.#authorized((call) => this.#release(call)),
    'POST /dashboard/destroy': this.#authorized((call) => this.#destroy(call)),
  };

  readonly sockets = {
    '/': (upgrade: Upgrade, { searchParams: query }: URL) => {
      this.#check(query);
      this.#feed.open(upgrade);
    },
  };

  onEvent(): void {
    this.#feed.changed();
  }

  #authorized(route: PageRoute): PageRoute {
    return (call) => {
      this.#check(call.query);
      return route(call);
    };
  }

  /** Requires the token of the link to the dashboard. @throws HttpFault 401 */
  #check(query: URLSearchParams): void {
    if (!isSameSecret(tokenInQuery(query), this.#token)) throw invalidLink(ADVICE);
  }

  /** The last picture of a browser. */
  #thumbnail({ query }: PageCall): Answer {
    const sessionId = query.get('session_id') ?? '';
    const found = this.#context.pools.poolOfSession(sessionId).find(sessionId);
    const chromium = found?.process.chromium;
    const picture = chromium && this.#feed.shown.thumbnailOf(chromium);
    if (!picture) throw notFound('There is no picture of this browser yet.');
    const { jpeg } = picture;
    return { status: 200, content: { type: 'image/jpeg', size: jpeg.length, data: jpeg } };
  }

  /** Ends a lease; its browser stays in the pool. */
  async #release(call: PageCall): Promise<Answer> {
    const { pool, sessionId } = await this.#findSeen(call);
    if (pool.release(sessionId, true)) return EMPTY;
    throw stateChanged();
  }

  /** Destroys a browser, leased or idle. */
  async #destroy(call: PageCall): Promise<Answer> {
    const { pool, sessionId } = await this.#findSeen(call);
    pool.delete(sessionId);
    return EMPTY;
  }

  /** Finds the browser in the state in which the person sees it: a later lease of its session must not end. */
  async #findSeen({ request }: PageCall) {
    const { session_id: sessionId, lease_id: leaseId } = await readBody(request, endRequest, 'refuse');
    const pool = this.#context.pools.poolOfSession(sessionId);
    if (pool.lease(sessionId)?.id !== leaseId) throw stateChanged();
    return { pool, sessionId };
  }
}

const endRequest = {
  session_id: text(),
  /** The lease that a person sees. Missing for an idle browser. */
  lease_id: optional(text()),
};

function stateChanged(): HttpFault {
  const message = 'This lease has ended meanwhile, or another one has begun. Nothing was changed.';
  return new HttpFault(409, 'conflict', message);
}

const ADVICE =
  'This link to the dashboard is incomplete, or belongs to a local pool that has ended. Open the link that the ' +
  'running local pool shows: the output of "pooled-browser serve", or dashboardUrl of startLocalPool.';
