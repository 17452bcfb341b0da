import { withLeaseTag } from '../service/ownership.js';
import { pageUrl, leaseName, leaseTags, type AcquireRequest } from '../service/pool-options.js';
import {
  anyOf,
  check,
  flag,
  group,
  milliseconds,
  off,
  optional,
  withDefault,
  type OptionsInput,
  type OptionsOutput,
} from '../shared/options.js';

const notNegative = () =>
  check<number>('a number, 0 or more', (value) => typeof value === 'number' && value >= 0);

const retry = {
  /**
   * Maximum number of retries after requests that failed or were answered too early. Default: no limit except
   * `acquireTimeout`.
   */
  retries: withDefault(notNegative(), Number.POSITIVE_INFINITY),
  /** Factor by which the backoff grows. Default: 2. */
  factor: withDefault(notNegative(), 2),
  /** First backoff in ms. Default: 250. */
  minTimeout: withDefault(notNegative(), 250),
  /** Longest backoff in ms. Default: 10,000. */
  maxTimeout: withDefault(notNegative(), 10_000),
  /** Multiplies each backoff by a random factor from 1 to 2. Default: `true`. */
  randomize: withDefault(flag(), true),
};

/** Backoff between acquire requests, with the options of p-retry. */
export interface RetryOptions extends OptionsInput<typeof retry> {}

/** Options of every acquire. */
export const acquireSet = {
  /**
   * Name of the lease: 1 to 255 letters, digits, `.`, `_` or `-`, unique among the active leases (API: endpoint 2). With
   * a name, a repeated acquire request can't lease a second browser: it fails with `LeaseNameTakenError`.
   */
  name: optional(leaseName()),
  /**
   * Up to 50 key-value pairs (API: endpoint 2). The library adds the tag `pooled-browser-lease`, by which it recognizes
   * its own lease.
   */
  tags: optional(leaseTags()),
  /** URL that the service opens in the browser, best effort (API: endpoint 2). Default: the pool's. */
  startUrl: optional(pageUrl()),
  /** Total time to wait for a browser, in ms. Default: 300,000. */
  acquireTimeout: withDefault(milliseconds(), 300_000),
  /**
   * Time in ms after which a call fails with `PoolConnectionError` if this process could never connect to the service.
   * After a first connection, only `acquireTimeout` applies, so that calls wait for a service that restarts. Default:
   * 30,000.
   */
  unreachableTimeout: withDefault(milliseconds(), 30_000),
  /**
   * Time that each acquire request asks the service to wait, in ms, rounded up to seconds (API:
   * acquire_timeout_seconds). `false`: the service decides. Default: 25,000.
   */
  pollTimeout: withDefault(
    anyOf('a number of milliseconds above 0, or false', milliseconds(), off()),
    25_000,
  ),
  /** Backoff between acquire requests that fail or are answered too early: {@link RetryOptions}. */
  retry: withDefault(group(retry), {}),
};

/** Returns the body of an acquire request. */
export function acquireBody(
  { name, tags, startUrl }: Pick<OptionsOutput<typeof acquireSet>, 'name' | 'tags' | 'startUrl'>,
  wait: number | undefined,
): AcquireRequest {
  return {
    ...(wait !== undefined && { acquire_timeout_seconds: wait }),
    ...(name && { name }),
    tags: withLeaseTag(tags),
    ...(startUrl && { start_url: startUrl }),
  };
}
