import { showValue } from './json.js';

/** Port numbers are from 1 to this one. */
const LAST_PORT = 65_535;
/** The schemes of requests and WebSockets, with the ports that their URLs do not show. */
export const SCHEMES = { http: 80, ws: 80, https: 443, wss: 443 } as const;
/** All addresses of the machine itself: the one host with a star that is an address. */
export const LOOPBACK_ADDRESSES = '127.*';
/** `<loopback>`: names and addresses that always mean the machine itself. */
const LOOPBACK = ['localhost', '*.localhost', LOOPBACK_ADDRESSES, '[::1]'];
const IP_V4 = String.raw`\d+\.\d+\.\d+\.\d+`;

/** One rule: a host of which `*` stands for any characters, and a port. */
export interface HostRule {
  readonly host: string;
  readonly port: number | undefined;
}

/** Reads a list of hosts without a fault, in the syntax of Playwright's option `exposeNetwork`. */
export function readHosts(list: string): HostRule[] {
  return list.split(',').flatMap((rule) => readRule(rule) as readonly HostRule[]);
}

/** Returns why a value is no list of hosts; `undefined` if it is one. */
export function faultInHosts(value: unknown): string | undefined {
  if (typeof value !== 'string')
    return `must be a list of hosts, such as 'localhost:3000', not ${showValue(value)}`;
  return faultInRules(value, (rule) => {
    const read = readRule(rule);
    return typeof read === 'string' ? read : undefined;
  });
}

/** Returns the first fault that a function finds in a rule of a list, with the rule and its place. */
export function faultInRules(
  list: string,
  faultOf: (rule: string) => string | undefined,
): string | undefined {
  let at = 1;
  for (const rule of list.split(',')) {
    const fault = faultOf(rule);
    const place = at + rule.length - rule.trimStart().length;
    if (fault !== undefined) return `has the rule ${showValue(rule.trim())} at character ${place}, ${fault}`;
    at += rule.length + 1;
  }
  return undefined;
}

/** Matches the URLs of requests and WebSockets to these hosts, as a browser writes them. */
export function patternOf(rules: readonly HostRule[]): RegExp {
  return new RegExp(rules.map(regExpOf).join('|'));
}

function readRule(text: string): readonly HostRule[] | string {
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

function regExpOf({ host, port }: HostRule): string {
  const escaped = host.replaceAll(/[.[\]]/g, String.raw`\$&`).replaceAll('*', '[^/:@]*');
  const isName = host.includes('*') && host !== '*' && host !== LOOPBACK_ADDRESSES;
  const address = {
    '*': String.raw`(?:\[[^/@]*\]|[^/:@]*)`,
    [LOOPBACK_ADDRESSES]: String.raw`127\.\d+\.\d+\.\d+`,
  };
  // As in Playwright, a star in a name never matches an IP address.
  const name = `${isName ? `(?!${IP_V4}[:/])` : ''}${address[host as '*'] ?? escaped}`;
  const urls = Object.entries(SCHEMES).map(([scheme, hidden]) => {
    const given = port === hidden ? '' : `:${port}`;
    // A URL may have a user name and a password.
    return `^${scheme}://(?:[^/@]*@)?${name}${port === undefined ? String.raw`(?::\d+)?` : given}/`;
  });
  return urls.join('|');
}
