import { InvalidOptionError } from '../shared/errors.js';
import { isLoopback } from '../shared/loopback.js';

/** The service's address, checked. A token must not travel in the clear: plain http is for loopback only. */
export function checkBaseUrl(baseUrl: unknown): URL {
  if (typeof baseUrl !== 'string' || !URL.canParse(baseUrl)) {
    throw invalid(
      'baseUrl must be an absolute URL, such as https://pool.example.com. Pass it or set BROWSER_POOL_BASE_URL.',
    );
  }
  const url = new URL(baseUrl);
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw invalid('baseUrl must begin with https://.');
  if (url.username || url.password)
    throw invalid('baseUrl must not hold a user name or a password: pass token.');
  if (url.search || url.hash) throw invalid('baseUrl must not have a query or a fragment.');
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw invalid(
      'baseUrl must begin with https:// (http:// is allowed on this machine only): the token is a secret.',
    );
  }
  return url;
}

/** The path of an endpoint below the service's address; each segment is encoded. */
export function endpointPath(baseUrl: URL, ...segments: string[]): string {
  const root = baseUrl.pathname.replace(/\/+$/, '');
  return [root, ...segments.map(encodeURIComponent)].join('/');
}

function invalid(message: string): InvalidOptionError {
  return new InvalidOptionError('baseUrl', message);
}
