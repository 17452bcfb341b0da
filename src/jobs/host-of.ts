import { InvalidOptionError } from '../shared/errors.js';
import { isRecord, propertyOf } from '../shared/json.js';
import type { MapSettings } from './options.js';

type HostOptions = Pick<MapSettings, 'hostOf' | 'hostConcurrency' | 'hostDelay'>;

/**
 * Returns a function that names the host of an input.
 *
 * @throws The function throws what the caller's `hostOf` throws; `InvalidOptionError` if an input has no host although hosts
 *   have limits, which would be ignored.
 */
export function hostNames({
  hostOf: given,
  hostConcurrency,
  hostDelay,
}: HostOptions): (input: unknown, index: number) => string | undefined {
  if (given) return (input) => expectName(given(input));
  const isLimited = hostDelay > 0 || hostConcurrency < Number.POSITIVE_INFINITY;
  return (input, index) => {
    const host = hostOfUrl(input);
    if (host !== undefined || !isLimited) return host;
    const message = `Input ${index} is no URL and has no url, so its host is not known: pass hostOf, which names the host of an input.`;
    throw new InvalidOptionError('hostOf', message);
  };
}

function expectName(name: unknown): string | undefined {
  if (name === undefined || typeof name === 'string') return name;
  throw new InvalidOptionError('hostOf', 'hostOf must return the name of a host, or undefined.');
}

/** The host of a URL, or of an object with a `url`. */
function hostOfUrl(input: unknown): string | undefined {
  const url = isRecord(input) && !(input instanceof URL) ? input['url'] : input;
  if (url instanceof URL) return url.host || undefined;
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).host || undefined : undefined;
}

/** How long the host of a task gets no other task, in ms: an error may have a `retryAfter`. */
export function retryAfterOf(error: unknown): number {
  const pause = propertyOf(error, 'retryAfter');
  return typeof pause === 'number' && pause > 0 ? pause : 0;
}
