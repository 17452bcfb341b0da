import type { LeaseRequest } from '../../services/browser-service.js';
import { SETTLE_TIMEOUT, type OpenUrlOptions } from '../../drivers/connector.js';
import { requestFactsOf } from '../../services/check-service.js';
import { raceAbort, raceTimeout } from '../../shared/abort.js';
import { asError } from '../../shared/errors.js';
import type { StepOf } from '../../shared/telemetry.js';
import type { EndWork, FeatureContext, LeaseFeature, Work } from '../../lease/feature.js';
import type { OtherStartOptions, StartPageSteps } from './options.js';

type Context = FeatureContext<StepOf<StartPageSteps>>;

/**
 * Opens `startUrl` where the service does not, or not in the page of the callback. As at a service that opens it, a failure does not
 * fail the lease.
 */
export class StartPage implements LeaseFeature {
  /** `connectTimeout` limits the opening of the page. */
  readonly needs = { time: Number.POSITIVE_INFINITY };
  readonly #url: string;
  readonly #connectTimeout: number;
  /** What the service opens is not limited. */
  readonly #isOpenedHere: boolean;

  constructor(url: string, { connectTimeout, allowedHosts }: OtherStartOptions) {
    this.#url = url;
    this.#connectTimeout = connectTimeout;
    this.#isOpenedHere = allowedHosts !== undefined;
  }

  request(): Partial<LeaseRequest> {
    return { startUrl: this.#isOpenedHere ? undefined : this.#url };
  }

  /** The service opens the URL in the browser's own context, also if the lease does not use that context. */
  leased(lease: FeatureContext): void {
    if (this.#isOpenedByService(lease)) lease.onOwnContextUsed();
  }

  /**
   * Opens the URL in the page of a connection, unless the service did; each task begins at the URL, too. Without a connection, opens it
   * in the first page of the browser.
   */
  async begin(work: Work<StepOf<StartPageSteps>>): Promise<EndWork | undefined> {
    const { kind, lease, connection } = work;
    if (kind === 'run') return undefined;
    const onlyIfBlank = kind === 'lease' && this.#isOpenedByService(lease);
    const timeout = this.#connectTimeout;
    if (connection) await openStartPage(work, this.#url, { timeout, onlyIfBlank });
    else if (!onlyIfBlank)
      await attempt(lease, this.#url, timeout, () => lease.service.openInFirstPage(this.#url));
    return undefined;
  }

  #isOpenedByService({ service }: Pick<FeatureContext, 'service'>): boolean {
    return !this.#isOpenedHere && requestFactsOf(service.facts).opensStartUrl;
  }
}

/** Opens a URL in the page of the handles. */
export async function openStartPage(
  { lease, connection, handles = {} }: Pick<Work<StepOf<StartPageSteps>>, 'lease' | 'connection' | 'handles'>,
  url: string,
  how: OpenUrlOptions,
): Promise<void> {
  await attempt(lease, url, how.timeout, async () => {
    if (!connection?.openUrl)
      throw new Error('The connector has no openUrl, which the option startUrl needs.');
    await connection.openUrl(handles, url, how);
  });
}

async function attempt(
  { signal, emit, sessionId }: Context,
  url: string,
  timeout: number,
  open: () => Promise<void>,
): Promise<void> {
  try {
    await raceAbort(
      // The library has this timeout, too, and then leaves a page that is still on its way.
      raceTimeout(timeout + SETTLE_TIMEOUT, open, late),
      signal,
    );
  } catch (error) {
    signal.throwIfAborted();
    emit({ type: 'start-url-failed', sessionId, url, error: asError(error) });
  }
}

const late = () => new Error('The page did not load within connectTimeout.');
