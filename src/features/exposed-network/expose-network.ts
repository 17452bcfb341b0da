import type { ConnectAddition } from '../../connect/extension.js';
import type { LeaseContext } from '../../lease/context.js';
import type { StepOf } from '../../shared/telemetry.js';
import type { LeaseFeature } from '../../lease/feature.js';
import { BrowserClients } from './browser-clients.js';
import { explainRefusal } from './explain-refusal.js';
import type { ExposeNetworkSteps } from './options.js';

/** Most hosts that are reported: a page can request any number. */
const MOST_HOSTS = 1000;

/** The option `exposeNetwork`. */
export class ExposeNetwork implements LeaseFeature {
  readonly name = 'exposeNetwork';
  readonly #hosts: string | undefined;
  /** The hosts that were reported. */
  readonly #reported = new Set<string>();

  constructor(hosts: string | undefined) {
    this.#hosts = hosts;
  }

  get needsCdp(): string | undefined {
    return this.#hosts === undefined ? undefined : 'exposeNetwork';
  }

  connect({ emit, sessionId }: LeaseContext<StepOf<ExposeNetworkSteps>>): ConnectAddition {
    const hosts = this.#hosts;
    if (hosts === undefined) return { explain: explainRefusal };
    const onRequest = (host: string) => {
      if (this.#reported.has(host) || this.#reported.size >= MOST_HOSTS) return;
      this.#reported.add(host);
      emit({ type: 'host-exposed', sessionId, host });
    };
    const clients = new BrowserClients();
    return {
      rules: [clients.rules],
      explain: (error, browser) => explainRefusal(error, browser, hosts),
      extend: async ({ openCdp: open, filter, starts, standIns, connectOptions, onLost }) => {
        const { ExposedNetwork } = await import('./exposed-network.js');
        // An option of Puppeteer.
        const { acceptInsecureCerts } = connectOptions as { acceptInsecureCerts?: unknown };
        const acceptsInsecureCerts = acceptInsecureCerts === true;
        return new ExposedNetwork({
          hosts,
          acceptsInsecureCerts,
          open,
          filter,
          starts,
          standIns,
          clients,
          onRequest,
          onLost,
        });
      },
    };
  }
}
