import type { RedisOptions } from 'ioredis';
import { environment } from '../../shared/environment.js';
import { InvalidOptionError } from '../../shared/errors.js';
import { isRecord } from '../../shared/json.js';

/** The address of Redis: a URL, or the options of ioredis. */
export type RedisAddress = string | RedisOptions;

/** Returns the address that was passed, or else that of the environment. */
export function addressOf(passed: RedisAddress | undefined): RedisAddress {
  const address = passed ?? environment.redisUrl();
  if (address === undefined) throw new InvalidOptionError('connection', NO_ADDRESS);
  const fault = faultOfAddress(address);
  if (fault !== undefined) throw new InvalidOptionError('connection', `REDIS_URL ${fault}.`);
  return address;
}

const NO_ADDRESS =
  'The queue needs Redis: set REDIS_URL, such as redis://127.0.0.1:6379, or pass the option connection.';

/** Finds out why a value is no address. The message does not show the value, which may contain a password. */
export function faultOfAddress(value: unknown): string | undefined {
  if (typeof value !== 'string') return isRecord(value) ? undefined : 'must be a URL or ioredis options';
  if (/^rediss?:\/\/./.test(value) && URL.canParse(value)) return undefined;
  return 'must be a URL that begins with redis:// or rediss://, such as redis://127.0.0.1:6379';
}
