import { InvalidOptionError } from './errors.js';

/** Returns true for a host name of this machine. */
export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}

/** Returns true for a URL of https or wss. */
export function isEncrypted({ protocol }: URL): boolean {
  return protocol === 'https:' || protocol === 'wss:';
}

/** The port of a URL, also if it is the usual one of its scheme. */
export function portOf(url: URL): string {
  return url.port || (isEncrypted(url) ? '443' : '80');
}

/**
 * Checks the address of a service. Requests carry the token, so plain http is allowed on loopback only.
 *
 * @param insecure Allows it everywhere, for a service in a private network.
 */
export function checkBaseUrl(baseUrl: unknown, { insecure = false } = {}): URL {
  if (typeof baseUrl !== 'string' || baseUrl === '') {
    throw invalid(
      'The address of the service is missing: set BROWSER_POOL_BASE_URL to the address of your service, or to local for Chromium on this machine (export BROWSER_POOL_BASE_URL=local).',
    );
  }
  if (!/^https?:\/\/./i.test(baseUrl) || !URL.canParse(baseUrl)) {
    throw invalid(
      `baseUrl must be local, or an absolute URL that begins with https:// or http://, not ${proposeAddress(baseUrl)}`,
    );
  }
  const url = new URL(baseUrl);
  if (url.username || url.password)
    throw invalid('baseUrl must not contain a user name or a password. Pass the option token.');
  if (url.search || url.hash) throw invalid('baseUrl must not have a query or a fragment.');
  if (url.protocol === 'http:' && !insecure && !isLoopback(url.hostname)) {
    throw invalid(
      `baseUrl must begin with https://, because requests carry the token (http:// is allowed on this machine only). ` +
        `Did you mean ${baseUrl.replace(/^http:/i, 'https:')}?`,
    );
  }
  return url;
}

/** Shows a wrong address, unless a part of it may be a secret, and suggests a correction. */
function proposeAddress(baseUrl: string): string {
  if (/[@?#]/.test(baseUrl)) return 'this value, which is not shown because it may contain a secret.';
  const shown = `${JSON.stringify(baseUrl)}.`;
  if (/^\W*local\W*$/i.test(baseUrl)) return `${shown} Did you mean local?`;
  const rest = baseUrl.replace(/^\w*:?\/\//, '');
  if (!URL.canParse(`https://${rest}`)) return shown;
  const isLocal = isLoopback(new URL(`https://${rest}`).hostname);
  if (!isLocal && !/[.:]/.test(rest)) return shown;
  return `${shown} Did you mean ${isLocal ? 'http' : 'https'}://${rest}?`;
}

/** Where a service is, and whether it may do without TLS. */
interface ServicePlace {
  readonly baseUrl: URL;
  readonly insecure: boolean;
}

/**
 * Returns why a WebSocket URL of a session must not be used; `undefined` if it may be used. The server at that URL
 * receives its secrets, so the URL must be wss, or ws on loopback for a service on loopback.
 */
export function webSocketFault(url: URL, service: ServicePlace): string | undefined {
  if (url.protocol !== 'wss:' && url.protocol !== 'ws:') return 'is not a WebSocket URL';
  return untrustedReason(url, service);
}

/** Returns why the URL of a video or a page must not be used, by the same rules. */
export function webFault(address: string, service: ServicePlace): string | undefined {
  if (!URL.canParse(address)) return 'is not a URL';
  const url = new URL(address);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'is not an http URL';
  return untrustedReason(url, service);
}

function untrustedReason(url: URL, { baseUrl, insecure }: ServicePlace): string | undefined {
  if (url.username || url.password) return 'contains a user name or a password';
  if (isEncrypted(url) || insecure) return undefined;
  if (!isLoopback(url.hostname))
    return `is not encrypted (${url.protocol.slice(0, -1)}) and leaves this machine`;
  return baseUrl.protocol === 'local:' || isLoopback(baseUrl.hostname)
    ? undefined
    : 'points to this machine, but the service is elsewhere';
}

const PAGE_SCHEMES = ['http:', 'https:', 'about:', 'data:'];

/** Other schemes run code in the open page, or read files and settings of the browser's machine. */
export function isPageUrl(url: string): boolean {
  return URL.canParse(url) && PAGE_SCHEMES.includes(new URL(url).protocol);
}

/** Whether a page shows nothing, or could not be loaded. */
export function isBlank(url: string): boolean {
  return /^(about:(blank|home|newtab)|chrome:\/\/(newtab|new-tab-page)\/?|chrome-error:.*)?$/.test(url);
}

/** The URL of a page of a service that people or programs may open, by the same rules: a file or a program of this machine is none. */
export function webPage(address = '', service: ServicePlace): string | undefined {
  return webFault(address, service) === undefined ? new URL(address).href : undefined;
}

/** Longest id or name in a path. */
const LONGEST_SEGMENT = 255;

/** Returns why a value can't be one segment of a path: it could reach another endpoint, encoded or not. */
export function pathSegmentFault(value: unknown): string | undefined {
  if (typeof value !== 'string') return `must be a string, not ${typeof value}`;
  if (value.trim() === '') return 'must not be empty';
  if (value === '.' || value === '..') return 'must not be a relative path';
  if (/[/\\%]/.test(value)) return 'must not contain a slash, a backslash or a percent sign';
  if (/\p{Cc}/u.test(value)) return 'must not contain control characters';
  if (!value.isWellFormed()) return 'must be well-formed Unicode';
  if (value.length > LONGEST_SEGMENT) return `must be at most ${LONGEST_SEGMENT} characters long`;
  return undefined;
}

function invalid(message: string): InvalidOptionError {
  return new InvalidOptionError('baseUrl', message);
}
