import { environment } from './environment.js';
import { InvalidOptionError } from './errors.js';
import { hideOwnSecret } from './redact.js';
import { isEncrypted, isLoopback, portOf } from './urls.js';

/** The options of a pool that decide how connections leave this machine. */
export interface NetworkSettings {
  /** URL of the proxy; `false`: none; undefined: the proxy of the environment. */
  readonly proxy?: string | false | undefined;
  /** Certificates in PEM text that are trusted besides those of Node. */
  readonly ca?: string | undefined;
}

/** Where a service is, whether it may do without TLS, and how to reach it. */
export interface Trust {
  readonly baseUrl: URL;
  readonly insecure: boolean;
  readonly network: NetworkSettings;
  /** Headers of each WebSocket to the address of the service. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Milliseconds after which each connection to a browser needs a command. */
  readonly keepAlive?: number | undefined;
}

/** How to connect to one host. It is JSON, because a helper process also uses it, and it can contain a password. */
export interface Route {
  /** URL of the proxy. */
  readonly proxy?: string | undefined;
  readonly ca?: string | undefined;
}

/**
 * Returns the route to the host of a URL. Loopback is never proxied. The credentials of the proxy become secrets.
 *
 * @throws InvalidOptionError for a variable of the environment that is not the URL of a proxy.
 */
export function routeTo(url: URL, { proxy: option, ca }: NetworkSettings): Route {
  if (option === false || url.protocol === 'local:' || isLoopback(url.hostname)) return { ca };
  const proxy = option ?? proxyOfEnvironment(url);
  if (proxy !== undefined) hideProxy(proxy);
  return { proxy, ca };
}

/** Makes the credentials of a proxy secrets. */
export function hideProxy(proxy: string): void {
  const { password } = new URL(proxy);
  for (const secret of [password, decodeURIComponent(password), credentialsOf(proxy)]) hideOwnSecret(secret);
}

function proxyOfEnvironment(target: URL): string | undefined {
  const found = environment.proxy(isEncrypted(target));
  if (!found || isExcluded(target, environment.noProxy())) return undefined;
  const [name, value] = found;
  const url = value.includes('://') ? value : `http://${value}`;
  const fault = proxyFault(url);
  if (fault) throw new InvalidOptionError('proxy', `${name} ${fault}.`);
  return url;
}

/**
 * Reads NO_PROXY as curl does, and also ports and `*` beside other entries: names, which exclude their subdomains, too, IP addresses and
 * their ranges, with commas or spaces between them; `*` excludes all hosts.
 */
function isExcluded(url: URL, list: string): boolean {
  const host = withoutDots(url.hostname.replaceAll(/^\[|\]$/g, ''));
  const entries = list.toLowerCase().split(/[\s,]+/);
  return entries.some((entry) => entry === '*' || matches(entry, host, portOf(url)));
}

function matches(entry: string, host: string, port: string): boolean {
  const { isIP, BlockList } = process.getBuiltinModule('node:net');
  // The last part of an IPv6 address without brackets is no port.
  const isBareIp = isIP(entry.split('/', 1)[0]!) === 6;
  const [, bracketed, name = '', given] = isBareIp ? [] : /^(?:\[(.*)\]|(.*?))(?::(\d+))?$/.exec(entry)!;
  if (given !== undefined && given !== port) return false;
  const excluded = isBareIp ? entry : (bracketed ?? withoutDots(name.replace(/^\*(?=\.)/, '')));
  const [address = '', bits, ...rest] = excluded.split('/');
  const family = isIP(address);
  if (family === 0)
    return excluded !== '' && (host === excluded || (isIP(host) === 0 && host.endsWith(`.${excluded}`)));
  const longest = family === 4 ? 32 : 128;
  const prefix = bits === undefined ? longest : Number(bits);
  if (isIP(host) !== family || bits === '' || rest.length > 0 || !(prefix >= 0 && prefix <= longest))
    return false;
  const type = family === 4 ? 'ipv4' : 'ipv6';
  const range = new BlockList();
  range.addSubnet(address, prefix, type);
  return range.check(host, type);
}

/** `.example.com` is `example.com`, and so is `example.com.`. */
function withoutDots(name: string): string {
  return name.replace(/^\./, '').replace(/\.$/, '');
}

/** Returns why a value is not the URL of a proxy. The message does not show the value, which may contain a password. */
export function proxyFault(value: unknown): string | undefined {
  try {
    // Throws for percent signs that encode no character.
    if (typeof value === 'string' && /^https?:\/\/./i.test(value) && credentialsOf(value)) return undefined;
  } catch {
    // Not a URL.
  }
  return 'must be the URL of an HTTP proxy, such as http://proxy.example.com:3128';
}

/** User name and password in the URL of a proxy; a colon if it has none. */
export function credentialsOf(proxy: string): string {
  const { username, password } = new URL(proxy);
  return `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
}

/** The proxy opened no connection, so nothing was sent. The message names the proxy without its credentials. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError' as const;
  /** Retrying does not help: the proxy refuses. */
  readonly isPermanent: boolean;

  constructor(message: string, { isPermanent = false, cause }: { isPermanent?: boolean; cause?: unknown }) {
    super(message, { cause });
    this.isPermanent = isPermanent;
  }
}
