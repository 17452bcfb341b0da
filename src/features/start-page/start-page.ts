import type { OpenConnection } from '../../drivers/open-browser.js';
import type { LeaseRequest } from '../../services/browser-service.js';
import { SETTLE_TIMEOUT } from '../../drivers/connector.js';
import { requestFactsOf } from '../../services/check-service.js';
import { raceAbort, raceTimeout } from '../../shared/abort.js';
import type { CallContext, LeaseContext } from '../../lease/context.js';
import { asError } from '../../shared/errors.js';
import { loadConnect } from '../../drivers/load-connect.js';
import type { StepOf } from '../../shared/telemetry.js';
import type { EndWork, LeaseFeature, OpenedPart, Work } from '../../lease/feature.js';
import type { SharedFacts } from '../shared-facts.js';
import type { StartPageSettings, StartPageSteps } from './options.js';

type Context = LeaseContext<StepOf<StartPageSteps>>;

/**
 * Opens `startUrl` where the service does not, or not in the page of the callback. As at a service that opens it, a failure does not
 * fail the lease.
 */
export class StartPage implements LeaseFeature {
  readonly name = 'start-page';
  /** `connectTimeout` limits the opening of the page. */
  readonly timeout = Number.POSITIVE_INFINITY;

  readonly #url: string | undefined;
  readonly #isForTasks: boolean;

  /** @param isForTasks Tasks open their own pages. */
  constructor({ startUrl }: StartPageSettings, isForTasks: boolean) {
    this.#url = startUrl;
    this.#isForTasks = isForTasks;
  }

  request(call: CallContext): Partial<LeaseRequest> {
    return { startUrl: isOpenedHere(call) ? undefined : this.#url };
  }

  /** The service opens the URL in the browser's own context, also if the lease does not use that context. */
  leased(lease: LeaseContext): void {
    if (this.#url !== undefined && isOpenedByService(lease)) lease.use.touchOwnContext();
  }

  /** Each task begins at the URL. */
  async begin({ kind, lease, ...part }: Work): Promise<EndWork | undefined> {
    if (kind === 'task') await this.openIn(lease, part, this.#url);
    return undefined;
  }

  /** Opens the URL in the page of a connection, unless the service did. Without a connection, in the first page of the browser. */
  async opened(lease: Context, part: OpenedPart | undefined): Promise<void> {
    if (this.#isForTasks) return;
    const isOpened = isOpenedByService(lease);
    if (part) return this.openIn(lease, part, this.#url, isOpened);
    if (!isOpened) await attempt(lease, this.#url, (url) => openDirectly(lease, url));
  }

  /** @param onlyIfBlank A page that shows something stays as it is. */
  async openIn(
    lease: Context,
    { connection, handles }: OpenedPart,
    startUrl: string | undefined,
    onlyIfBlank = false,
  ): Promise<void> {
    const { connectTimeout: timeout } = lease.settings;
    await attempt(lease, startUrl, async (url) => {
      const { openUrl } = connection as OpenConnection<object>;
      if (!openUrl) throw new Error('The connector has no openUrl, which the option startUrl needs.');
      await openUrl(handles, url, { timeout, onlyIfBlank });
    });
  }
}

/** What the service opens is not limited. */
function isOpenedHere({ shared }: Pick<CallContext, 'shared'>): boolean {
  return (shared as Partial<SharedFacts>).areHostsLimited === true;
}

function isOpenedByService(lease: Pick<LeaseContext, 'shared' | 'pool'>): boolean {
  return !isOpenedHere(lease) && requestFactsOf(lease.pool.service).opensStartUrl;
}

async function attempt(
  { settings, signal, emit, sessionId }: Context,
  url: string | undefined,
  open: (url: string) => Promise<void>,
): Promise<void> {
  if (url === undefined) return;
  try {
    await raceAbort(
      // The library has this timeout, too, and then leaves a page that is still on its way.
      raceTimeout(settings.connectTimeout + SETTLE_TIMEOUT, () => open(url), late),
      signal,
    );
  } catch (error) {
    signal.throwIfAborted();
    emit({ type: 'start-url-failed', sessionId, url, error: asError(error) });
  }
}

const late = () => new Error('The page did not load within connectTimeout.');

/** Opens a URL with a connection of its own. */
async function openDirectly({ grant, pool, signal }: Context, url: string): Promise<void> {
  if (grant.endsWithConnection)
    throw new Error('The browser begins and ends with the connection of its user.');
  const { trust } = pool.client;
  const { openSocket, openInFirstPage } = await loadConnect();
  const socket = await openSocket(grant, { protocol: 'cdp', trust, signal });
  await openInFirstPage(socket, url).finally(() => socket.cut('closed-by-us'));
}
