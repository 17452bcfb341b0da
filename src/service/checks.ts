import { InvalidOptionError, rejectUnknownOptions } from '../shared/errors.js';
import { isRecord, showValue } from '../shared/json.js';
import type { AcquireRequest } from './wire.js';

const NAME = /^[a-zA-Z0-9._-]{1,255}$/;
const MOST_TAGS = 50;

/** Refuses what can't be one segment of a path: encoded or not, it could reach another endpoint. */
export function checkPathSegment(value: unknown, option: string): asserts value is string {
  const fault = pathSegmentFault(value);
  if (fault) throw new InvalidOptionError(option, `${option} ${fault}.`);
}

export function pathSegmentFault(value: unknown): string | undefined {
  if (typeof value !== 'string') return `must be a string, not ${typeof value}`;
  if (value.trim() === '') return 'must not be empty';
  if (value === '.' || value === '..') return 'must not be a relative path';
  if (/[/\\%]/.test(value)) return 'must not contain a slash, a backslash or a percent sign';
  if (/\p{Cc}/u.test(value)) return 'must not contain control characters';
  if (!value.isWellFormed()) return 'must be well-formed Unicode';
  if (value.length > 255) return 'must be at most 255 characters long';
  return undefined;
}

/** Checks an acquire request against the interface's rules (endpoint 2) before it is sent. */
export function checkAcquireRequest(request: AcquireRequest): void {
  if (!isRecord(request)) throw new InvalidOptionError('request', 'The acquire request must be an object.');
  rejectUnknownOptions(request, ['acquire_timeout_seconds', 'name', 'tags', 'start_url'], 'acquire');
  checkWait(request.acquire_timeout_seconds);
  checkLeaseName(request.name);
  checkTags(request.tags);
  checkStartUrl(request.start_url, 'start_url');
}

function checkWait(seconds: unknown): void {
  if (seconds === undefined || (Number.isSafeInteger(seconds) && (seconds as number) >= 0)) return;
  throw new InvalidOptionError(
    'acquire_timeout_seconds',
    `acquire_timeout_seconds must be a whole number of seconds, 0 or more, not ${showValue(seconds)}.`,
  );
}

export function checkLeaseName(name: unknown): void {
  if (name === undefined || (typeof name === 'string' && NAME.test(name))) return;
  throw new InvalidOptionError(
    'name',
    'name must have 1 to 255 characters, each a letter, a digit, a dot, an underscore or a hyphen.',
  );
}

export function checkTags(tags: unknown): void {
  if (tags === undefined) return;
  if (!isRecord(tags) || Object.values(tags).some((value) => typeof value !== 'string')) {
    throw new InvalidOptionError('tags', 'tags must be an object whose values are strings.');
  }
  const count = Object.keys(tags).length;
  if (count > MOST_TAGS) {
    throw new InvalidOptionError('tags', `tags must have at most ${MOST_TAGS} pairs, not ${count}.`);
  }
}

export function checkStartUrl(url: unknown, option: string): void {
  if (url === undefined || (typeof url === 'string' && URL.canParse(url))) return;
  throw new InvalidOptionError(option, `${option} must be an absolute URL, such as https://example.com/.`);
}

/** A header must not be split or garbled by its token. */
export function checkToken<Token>(token: Token | undefined): Exclude<Token, undefined> {
  if (typeof token === 'function' || (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token))) {
    return token as Exclude<Token, undefined>;
  }
  const message =
    token === undefined
      ? 'There is no access token. Pass the option token or set BROWSER_POOL_ACCESS_TOKEN.'
      : 'token must be a string of visible ASCII characters, or a function that returns one.';
  throw new InvalidOptionError('token', message);
}

export function checkReleaseOptions(options: { reuse?: unknown; timeout?: unknown }): void {
  rejectUnknownOptions(options, ['reuse', 'timeout', 'signal'], 'release');
  const { reuse, timeout } = options;
  if (reuse !== undefined && typeof reuse !== 'boolean') {
    throw new InvalidOptionError('reuse', 'reuse must be true or false.');
  }
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout >= 0)) {
    throw new InvalidOptionError('timeout', 'timeout must be a number of milliseconds, 0 or more.');
  }
}
