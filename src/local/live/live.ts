import { createHmac, randomBytes } from 'node:crypto';
import { isSameSecret } from '../../net/loopback-server.js';
import { LIVE_STYLE } from '../../live/live-markup.js';
import { LiveView, type LiveMode } from '../../live/live-view.js';
import type { FeatureContext, LiveLinks, LocalFeature } from '../feature.js';
import { invalidLink, tokenInQuery, type PageRoute } from '../http/page.js';
import type { ServedPool } from '../pool/served-pool.js';
import type { EndedLease, ServedLease } from '../pool/served-lease.js';
import { replayPageUrl } from '../replays/replay-pages.js';
import { openLeaseSocket } from '../sockets/lease-socket.js';
import type { Upgrade } from '../../net/accept-websocket.js';
import { livePage, type LiveFacts } from './live-page.js';

/** What the viewer of a live view may do. */
type LiveRight = 'control' | 'watch';

/** Maximum size of a message of a viewer, in bytes. Pasted text can be long. */
const MOST_BYTES = 1024 * 1024;

/** The live view: a page that shows a leased browser, and controls it. */
export class LiveViews implements LocalFeature {
  readonly styles = { live: LIVE_STYLE };
  readonly #context: FeatureContext;
  /** Signs the tokens of links. */
  readonly #secret = randomBytes(32);

  constructor(context: FeatureContext) {
    this.#context = context;
  }

  readonly pages: Record<string, PageRoute> = {
    'GET /live': ({ query }) => livePage('outcome' in this.#find(query).lease),
    'GET /live/facts': ({ query }) => ({ status: 200, body: this.#facts(this.#find(query).lease) }),
  };

  readonly sockets = {
    '/live': (upgrade: Upgrade, { searchParams: query }: URL) => this.#open(upgrade, query),
  };

  /** Browsers with windows have a live view; headless browsers only with a quirk. */
  liveLinks({ settings }: ServedPool, lease: ServedLease): LiveLinks | undefined {
    if (!lease.browser.process.chromium) return undefined;
    if (settings.headless && !this.#context.quirks.liveViewsHeadless) return undefined;
    return { control: this.#urlOf(lease, 'control'), watch: this.#urlOf(lease, 'watch') };
  }

  #open(upgrade: Upgrade, query: URLSearchParams): void {
    const { lease, right } = this.#find(query);
    if ('outcome' in lease) throw invalidLink(ADVICE);
    const mode = this.#modeOf(lease, right, query);
    openLeaseSocket(
      this.#context.log,
      {
        lease,
        protocol: 'live-view',
        maxBytes: MOST_BYTES,
        open: (socket) => new LiveView(socket, lease.browser.process.chromium!, mode),
      },
      upgrade,
    );
  }

  /** Viewers with control choose: `?readOnly=true` in the URL only shows the browser. */
  #modeOf(lease: ServedLease, right: LiveRight, query: URLSearchParams): LiveMode {
    if (right === 'watch') return { readOnly: true };
    const readOnly = (query.get('readOnly') ?? 'false') !== 'false';
    return { readOnly, otherUrl: this.#urlOf(lease, readOnly ? 'control' : 'watch') };
  }

  #facts(lease: ServedLease | EndedLease): LiveFacts {
    const { host, recordings } = this.#context;
    const ended = 'outcome' in lease ? lease : undefined;
    const own = recordings.list().filter(({ session }) => session.leaseId === lease.id);
    return {
      sessionId: lease.sessionId,
      leaseName: lease.request.name,
      outcome: ended?.outcome,
      duration: ended?.duration,
      replays: own.map((recording) => replayPageUrl(host, recording)),
    };
  }

  /** Finds the lease of a link, active or ended, and the right that the link gives. */
  #find(query: URLSearchParams): { lease: ServedLease | EndedLease; right: LiveRight } {
    const { pools } = this.#context;
    const token = tokenInQuery(query);
    for (const lease of [...pools.leases, ...pools.history.list]) {
      const right = (['control', 'watch'] as const).find((one) =>
        isSameSecret(token, this.#token(lease, one)),
      );
      if (right) return { lease, right };
    }
    throw invalidLink(ADVICE);
  }

  /** URL of the page. With `watch`, the person cannot control the browser, and no change of the URL gives more rights. */
  #urlOf(lease: ServedLease, right: LiveRight): string {
    return `http://${this.#context.host}/live?token=${this.#token(lease, right)}`;
  }

  /** 128 bits, so that the link is short and cannot be guessed. */
  #token({ id }: { readonly id: string }, right: LiveRight): string {
    return createHmac('sha256', this.#secret).update(`${right} ${id}`).digest('hex').slice(0, 32);
  }
}

const ADVICE =
  'This link to a live view is incomplete, or its lease ended long ago. The dashboard of the local pool has the ' +
  'links to all leases and recordings; "pooled-browser serve" prints its address.';
