import type { BrowserProtocol } from '../../drivers/connector.js';
import type { ConnectExtension, Opening } from '../../drivers/extension.js';
import type { StepOf } from '../../shared/telemetry.js';
import type { FeatureContext, LeaseFeature } from '../../lease/feature.js';
import type { LeaseRequest } from '../../services/browser-service.js';
import { addAdvice, InvalidOptionError } from '../../shared/errors.js';
import { patternOf, readHosts } from '../../shared/hosts.js';
import { excerpt } from '../../shared/redact.js';
import { HostLimit } from './host-limit.js';
import { NO_BIDI, type AllowedHostsResult, type AllowedHostsSteps } from './options.js';
import { REFUSED } from './page-guard.js';
import { isError } from '../../shared/globals.js';

/** Most hosts that are counted: a page can request any number. */
const MOST_HOSTS = 1000;
/** Longest host that is shown, in characters: a name of DNS with its port. */
const LONGEST_HOST = 260;

const NO_DETACH =
  'detach is not possible with allowedHosts: nothing would limit the browser until another process uses it.';

/** The option `allowedHosts`. */
export class AllowedHosts implements LeaseFeature {
  /** The limit ends with its connection. */
  readonly needs = { cdp: 'allowedHosts', thisProcess: NO_DETACH };
  readonly #hosts: string;
  readonly #protocol: BrowserProtocol;
  /** The number of refused requests, by their host. */
  readonly #refused = new Map<string, number>();

  constructor(hosts: string, protocol: BrowserProtocol) {
    this.#hosts = hosts;
    this.#protocol = protocol;
  }

  get summary(): AllowedHostsResult {
    return { refusedHosts: [...this.#refused].map(([host, count]) => ({ host, count })) };
  }

  /** Where browsers start for a lease, they need no guard in their pages to send nothing past the limit. */
  request(): Partial<LeaseRequest> {
    return { noUdp: true };
  }

  async connect(
    lease: FeatureContext<StepOf<AllowedHostsSteps>>,
    opening: Opening,
  ): Promise<ConnectExtension> {
    const hosts = this.#hosts;
    if (this.#protocol === 'bidi') throw new InvalidOptionError('allowedHosts', NO_BIDI);
    if (lease.grant.hasProfile === true) throw new InvalidOptionError('allowedHosts', NO_PROFILE);
    const limit = await HostLimit.begin(opening, {
      hosts,
      explain: (url) => reasonFor(url, hosts),
      onRefused: (url) => this.#note(url, lease),
      onOwnContextUsed: lease.onOwnContextUsed,
    });
    return {
      explain: (error) => explainRefused(error, hosts),
      stop: () => limit.stop(),
      end: () => limit.end(),
    };
  }

  #note(url: string, { emit, sessionId }: FeatureContext<StepOf<AllowedHostsSteps>>): void {
    const host = excerpt(new URL(url).host, LONGEST_HOST);
    const count = this.#refused.get(host);
    if (count === undefined && this.#refused.size >= MOST_HOSTS) return;
    this.#refused.set(host, (count ?? 0) + 1);
    if (count === undefined) emit({ type: 'request-refused', sessionId, host });
  }
}

const NO_PROFILE =
  'allowedHosts and the profile of the session exclude each other: the lease works in a context of its own, without the logins of ' +
  'the profile. Remove the option, or lease a browser without a profile.';

/** How both libraries report that a navigation failed because of the limit. */
const FAILED = new RegExp(`${REFUSED}(?: at (\\S+))?`);
const WHY = 'The browser may reach only allowedHosts:';

/** Adds to the error of a navigation that its host is not allowed. */
function explainRefused(error: unknown, hosts: string): void {
  if (!isError(error) || error.message.includes(WHY)) return;
  const [refused, address = ''] = FAILED.exec(error.message) ?? [];
  if (refused === undefined) return;
  addAdvice(error, refused, reasonFor(address, hosts));
}

function reasonFor(address = '', hosts: string): string {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const isRedirect = url !== undefined && patternOf(readHosts(hosts)).test(url.href);
  const advice = isRedirect
    ? `${url.host} redirects to another host`
    : `To allow ${url?.host ?? 'the host'}, add it to the option`;
  return `${WHY} '${hosts}'. ${advice}.`;
}
