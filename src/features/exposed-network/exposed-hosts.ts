import { patternOf, readHosts, SCHEMES, type HostRule } from '../../shared/hosts.js';

/** The ports that browsers refuse, because servers of other protocols listen there (Fetch Standard, "bad ports"). */
const REFUSED_PORTS = new Set(
  (
    '0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137 139 143 ' +
    '161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720 1723 2049 3659 ' +
    '4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080'
  ).split(' '),
);

declare const exposed: unique symbol;

/** The URL of an exposed host, as it was parsed and tested: only such a URL is opened. */
export type ExposedUrl = string & { readonly [exposed]: true };

/** The hosts of the option `exposeNetwork`, in the syntax of Playwright's option of this name. */
export class ExposedHosts {
  /** The option. */
  readonly list: string;
  /** Matches the URLs of requests and WebSockets to these hosts, as a browser writes them. */
  readonly pattern: RegExp;
  /** The patterns of the requests for `Fetch.enable`. A star of CDP also stands for slashes, so a few of the URLs do not match. */
  readonly cdpPatterns: readonly string[];

  /** @param list Rules without a fault. */
  constructor(list: string) {
    this.list = list;
    const rules = readHosts(list);
    this.pattern = patternOf(rules);
    this.cdpPatterns = rules.flatMap(cdpPatternsOf);
  }

  /**
   * Reads the URL of a request or a WebSocket, from outside. Returns undefined if its host is not exposed, and for a port that browsers
   * refuse.
   */
  read(text: string, kind: 'request' | 'websocket'): ExposedUrl | undefined {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    const schemes = kind === 'request' ? /^https?:$/ : /^wss?:$/;
    const isExposed = url && schemes.test(url.protocol) && this.pattern.test(url.href);
    return isExposed && !REFUSED_PORTS.has(url.port) ? (url.href as ExposedUrl) : undefined;
  }
}

function cdpPatternsOf({ host, port }: HostRule): string[] {
  return (['http', 'https'] as const).flatMap((scheme) => {
    const ports = port === undefined ? ['', ':*'] : [port === SCHEMES[scheme] ? '' : `:${port}`];
    return ports.flatMap((shown) => ['', '*@'].map((user) => `${scheme}://${user}${host}${shown}/*`));
  });
}
