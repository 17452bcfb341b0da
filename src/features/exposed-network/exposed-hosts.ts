import { patternOf, readHosts, SCHEMES, type HostRule } from '../../shared/hosts.js';

declare const exposed: unique symbol;

/** The URL of an exposed host, as it was parsed and tested: only such a URL is opened. */
export type ExposedUrl = string & { readonly [exposed]: true };

/** The hosts of the option `exposeNetwork`, in the syntax of Playwright's option of this name. */
export class ExposedHosts {
  /** Matches the URLs of requests and WebSockets to these hosts, as a browser writes them. */
  readonly pattern: RegExp;
  /** The patterns of the requests for `Fetch.enable`. A star of CDP also stands for slashes, so a few of the URLs do not match. */
  readonly cdpPatterns: readonly string[];

  /** @param list Rules without a fault. */
  constructor(list: string) {
    const rules = readHosts(list);
    this.pattern = patternOf(rules);
    this.cdpPatterns = rules.flatMap(cdpPatternsOf);
  }

  /** Reads the URL of a request or a WebSocket, from outside. Returns undefined if its host is not exposed. */
  read(text: string, kind: 'request' | 'websocket'): ExposedUrl | undefined {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    const schemes = kind === 'request' ? /^https?:$/ : /^wss?:$/;
    const isExposed = url && schemes.test(url.protocol) && this.pattern.test(url.href);
    return isExposed ? (url.href as ExposedUrl) : undefined;
  }
}

function cdpPatternsOf({ host, port }: HostRule): string[] {
  return (['http', 'https'] as const).flatMap((scheme) => {
    const ports = port === undefined ? ['', ':*'] : [port === SCHEMES[scheme] ? '' : `:${port}`];
    return ports.flatMap((shown) => ['', '*@'].map((user) => `${scheme}://${user}${host}${shown}/*`));
  });
}
