import { InvalidOptionError } from '../../shared/errors.js';
import { isRecord } from '../../shared/json.js';
import { checked, checksOf, optional, type Checked } from '../../shared/options.js';
import { faultInAllowedHosts } from './bypass-list.js';

/** Which hosts the browser may reach. */
export interface AllowedHostsOption {
  /**
   * The only hosts from which the leased browser may load, such as `'example.com,*.example.com'`. The syntax is that of
   * `exposeNetwork`. Requests to other hosts fail in the page. The lease works in contexts of its own, also with `context:
   * 'default'`. Needs a CDP URL of the session. Default: all hosts.
   */
  allowedHosts?: string | undefined;
}

export const allowedHostsChecks = checksOf<AllowedHostsOption>()({
  allowedHosts: optional(checked<string>(faultInAllowedHosts)),
});

export type AllowedHostsSettings = Checked<typeof allowedHostsChecks>;

/** A host that the browser did not load from. */
export interface RefusedHost {
  /** The host, with its port if the URL has one. */
  readonly host: string;
  /** Number of requests that the browser reported as failed. */
  readonly count: number;
}

/** What `allowedHosts` adds to the result. */
export interface AllowedHostsResult {
  /** The hosts that `allowedHosts` refused, as far as the browser reported them. */
  refusedHosts: readonly RefusedHost[];
}

/** The events of `allowedHosts`. */
export interface AllowedHostsSteps {
  /** A page requested a host that `allowedHosts` refuses. Emitted once for each host. */
  'request-refused': { sessionId: string; host: string };
}

interface Given extends AllowedHostsSettings {
  readonly protocol: string;
  readonly contextOptions?: object | undefined;
}

/**
 * Refuses what would leave the browser without the limit, also a proxy in the options of a context: what a function returns is
 * checked for each task.
 */
export function verifyAllowedHosts({ allowedHosts, protocol, contextOptions }: Given): object | undefined {
  if (allowedHosts === undefined) return undefined;
  if (protocol === 'bidi') throw new InvalidOptionError('allowedHosts', NO_BIDI);
  if (typeof contextOptions !== 'function') return refuseProxy(contextOptions);
  const optionsOf = contextOptions as (...input: unknown[]) => unknown;
  const checkedOptions = (...input: unknown[]) => {
    const options = optionsOf(...input);
    refuseProxy(options);
    return options;
  };
  return { contextOptions: checkedOptions };
}

export const NO_BIDI =
  "allowedHosts can't limit a browser over WebDriver BiDi, which has no contexts with hosts of their own. Use protocol 'cdp'.";

export const NO_LIMIT =
  'This function, or this command, can not limit the hosts that a browser reaches, as the environment variable ' +
  'BROWSER_POOL_ALLOWED_HOSTS demands. Unset the variable, or use a function or a command that has the option allowedHosts.';

/** The names of Playwright and of Puppeteer. */
const PROXIES = ['proxy', 'proxyServer', 'proxyBypassList'];

function refuseProxy(contextOptions: unknown): undefined {
  const name = isRecord(contextOptions) && PROXIES.find((one) => contextOptions[one] !== undefined);
  if (!name) return undefined;
  const message = `contextOptions.${name} and allowedHosts exclude each other: Chromium limits the hosts of a context by its proxy. Remove one of them.`;
  throw new InvalidOptionError(`contextOptions.${name}`, message);
}
