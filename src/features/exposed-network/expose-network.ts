import type { ConnectExtension, Opening } from '../../drivers/extension.js';
import type { StepOf } from '../../shared/telemetry.js';
import type { FeatureContext, FeatureNeeds, LeaseFeature } from '../../lease/feature.js';
import { addAdvice } from '../../shared/errors.js';
import { isLoopback } from '../../shared/urls.js';
import type { PlaceholderFiles } from '../placeholder-files.js';
import { ExposedHosts } from './exposed-hosts.js';
import type { ExposeNetworkSteps } from './options.js';
import { propertyOf } from '../../shared/json.js';

/** Most hosts that are reported: a page can request any number. */
const MOST_HOSTS = 1000;

interface ExposeNetworkPlan {
  readonly exposeNetwork: string;
  readonly placeholders: PlaceholderFiles;
}

/** The option `exposeNetwork`. */
export class ExposeNetwork implements LeaseFeature {
  readonly #option: ExposeNetworkPlan | undefined;
  /** The hosts that were reported. */
  readonly #reported = new Set<string>();

  /** An object exists also without the option: it explains errors for which the option helps. */
  constructor(option?: ExposeNetworkPlan) {
    this.#option = option;
  }

  get needs(): FeatureNeeds {
    return this.#option ? { cdp: 'exposeNetwork' } : {};
  }

  async connect(
    { emit, sessionId }: FeatureContext<StepOf<ExposeNetworkSteps>>,
    opening: Opening,
  ): Promise<ConnectExtension> {
    if (!this.#option) return { explain: (error) => explainRefusal(error, opening) };
    const { exposeNetwork, placeholders } = this.#option;
    const hosts = new ExposedHosts(exposeNetwork);
    const onRequest = (host: string) => {
      if (this.#reported.has(host) || this.#reported.size >= MOST_HOSTS) return;
      this.#reported.add(host);
      emit({ type: 'host-exposed', sessionId, host });
    };
    const { ExposedNetwork } = await import('./exposed-network.js');
    const network = new ExposedNetwork({ ...opening, placeholders, hosts, onRequest });
    return {
      useBrowser: (browser) => network.useBrowser(browser),
      explain: (error) => explainRefusal(error, opening, hosts),
      stop: () => network.stop(),
    };
  }
}

/** How both libraries report that nothing listens at the URL of a navigation. Over WebDriver BiDi, a stack precedes the URL. */
const REFUSED = /net::ERR_CONNECTION_REFUSED(?: at (\S+)|[^]*? at (\w+:\/\/\S+)$)/;
const ELSEWHERE = 'The leased browser runs on another machine, where this address means that machine.';

/**
 * Adds to the error of a navigation to a loopback address what makes the browser of this lease reach a server of this machine.
 *
 * @param error Also the plain object of a test runner.
 * @param exposed These addresses mean this machine.
 */
export function explainRefusal(
  error: unknown,
  { isElsewhere }: Pick<Opening, 'isElsewhere'>,
  exposed?: ExposedHosts,
): void {
  const message = propertyOf(error, 'message');
  if (typeof message !== 'string' || (!isElsewhere && !exposed)) return;
  const [refused, address, last] = REFUSED.exec(message) ?? [];
  const url = address ?? last ?? '';
  if (refused === undefined || !URL.canParse(url)) return;
  const { hostname, host } = new URL(url);
  if (!isLoopback(hostname) && !hostname.endsWith('.localhost')) return;
  if (exposed?.read(url, 'request') !== undefined) return;
  const advice = exposed
    ? `exposeNetwork ('${exposed.list}') does not contain ${host}. Set exposeNetwork: '${exposed.list},${host}', or '<loopback>', which ` +
      'covers localhost, 127.0.0.1 and [::1].'
    : `${ELSEWHERE} To reach a server of your machine, set exposeNetwork: '${host}'.`;
  addAdvice(error as Error, refused, advice);
}
