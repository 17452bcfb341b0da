import { showValue } from '../../shared/json.js';

/** Port numbers are from 1 to this one. */
const LAST_PORT = 65_535;
/** The schemes of requests and WebSockets, with the ports that their URLs do not show. */
const SCHEMES = { http: 80, ws: 80, https: 443, wss: 443 } as const;
/** `<loopback>`: names and addresses that always mean the machine itself. */
const LOOPBACK = ['localhost', '*.localhost', '127.*', '[::1]'];
const IP_V4 = String.raw`\d+\.\d+\.\d+\.\d+`;

/** One rule: a host of which `*` stands for any characters, and a port. */
interface Rule {
  readonly host: string;
  readonly port: number | undefined;
}

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
    const rules = list.split(',').flatMap((rule) => readRule(rule) as readonly Rule[]);
    this.pattern = new RegExp(rules.map(regExpOf).join('|'));
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

/** Returns why a value is no list of hosts; `undefined` if it is one. */
export function faultInHosts(value: unknown): string | undefined {
  if (typeof value !== 'string')
    return `must be a list of hosts, such as 'localhost:3000', not ${showValue(value)}`;
  const wrong = value.split(',').find((rule) => typeof readRule(rule) === 'string');
  return wrong === undefined
    ? undefined
    : `has the rule ${showValue(wrong.trim())}, ${String(readRule(wrong))}`;
}

/** Returns the fault of a rule as a text. */
function readRule(text: string): readonly Rule[] | string {
  const [, host = '', digits] = /^(\[.*\]|.*?)(?::(\d+))?$/.exec(text.trim()) ?? [];
  const port = digits === undefined ? undefined : Number(digits);
  if (port === 0 || (port ?? 0) > LAST_PORT) return `whose port must be 1 to ${LAST_PORT}`;
  if (host.toLowerCase() === '<loopback>') return LOOPBACK.map((each) => ({ host: each, port }));
  const name = canonicalHost(host);
  return name === undefined ? ADVICE : [{ host: name, port }];
}

const ADVICE =
  "which is no host: write names, IP addresses or <loopback>, each with or without a port, separated by commas, such as 'localhost:3000,*.internal,[::1]'";

/** A host as a browser writes it in a URL. A name may begin with a dot, which means all its subdomains. */
function canonicalHost(host: string): string | undefined {
  const url = `http://${host.startsWith('.') ? `*${host}` : host}`;
  const name = URL.canParse(url) ? new URL(url).hostname : '';
  // The URL could have a path, or a name and a password.
  if (host.startsWith('[')) return /^\[[\da-f:]+\]$/.test(name) ? name : undefined;
  if (!/^[\w*-]+(\.[\w*-]+)*$/.test(name) || /[@/?#:]/.test(host)) return undefined;
  // A browser reads a number as an address: a rule 3000 is not the port 3000.
  return new RegExp(`^${IP_V4}$`).test(name) && name !== host ? undefined : name;
}

function regExpOf({ host, port }: Rule): string {
  const escaped = host.replaceAll(/[.[\]]/g, String.raw`\$&`).replaceAll('*', '[^/:@]*');
  const isName = host.includes('*') && host !== '*' && host !== '127.*';
  const address = { '*': String.raw`(?:\[[^/@]*\]|[^/:@]*)`, '127.*': String.raw`127\.\d+\.\d+\.\d+` };
  // As in Playwright, a star in a name never matches an IP address.
  const name = `${isName ? `(?!${IP_V4}[:/])` : ''}${address[host as '*'] ?? escaped}`;
  const urls = Object.entries(SCHEMES).map(([scheme, hidden]) => {
    const given = port === hidden ? '' : `:${port}`;
    // A URL may have a user name and a password.
    return `^${scheme}://(?:[^/@]*@)?${name}${port === undefined ? String.raw`(?::\d+)?` : given}/`;
  });
  return urls.join('|');
}

function cdpPatternsOf({ host, port }: Rule): string[] {
  return (['http', 'https'] as const).flatMap((scheme) => {
    const ports = port === undefined ? ['', ':*'] : [port === SCHEMES[scheme] ? '' : `:${port}`];
    return ports.flatMap((shown) => ['', '*@'].map((user) => `${scheme}://${user}${host}${shown}/*`));
  });
}
