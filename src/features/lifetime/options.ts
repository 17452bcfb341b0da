import { InvalidOptionError } from '../../shared/errors.js';
import { checksOf, milliseconds, optional, type Checked } from '../../shared/options.js';

/** How long a lease may last. */
export interface LifetimeOptions {
  /**
   * Longest time of a lease, in ms; of a job, of each lease. It counts from the time at which the pool leases the browser.
   * At its end, `signal` aborts with `LeaseExpiredError`, and the browser is released. A release that has begun goes on.
   * `extend` moves the end. After `detach`, the time goes on, and nothing of this library ends the lease until a process
   * attaches: with the rest, or with its own `lifetime` if that ends earlier.
   * @default Infinity
   */
  lifetime?: number | undefined;
  /**
   * Longest time to which `extend` can move the end, in ms. It counts as `lifetime`, and is not below it. It requires `lifetime`.
   * Default: twice `lifetime`.
   */
  maxLifetime?: number | undefined;
}

export const lifetimeChecks = checksOf<LifetimeOptions>()({
  lifetime: optional(milliseconds(), Number.POSITIVE_INFINITY),
  maxLifetime: optional(milliseconds()),
});

/** The checked options of the feature. */
export interface LifetimeSettings extends Checked<typeof lifetimeChecks> {}

/** Refuses a `maxLifetime` without effect. */
export function verifyLifetime({ lifetime, maxLifetime }: LifetimeSettings): void {
  if (maxLifetime === undefined) return;
  if (lifetime === Number.POSITIVE_INFINITY)
    throw new InvalidOptionError(
      'maxLifetime',
      'maxLifetime limits extend, which needs the option lifetime.',
    );
  if (maxLifetime >= lifetime) return;
  const message = `maxLifetime must be at least lifetime, which is ${lifetime} ms, not ${maxLifetime}.`;
  throw new InvalidOptionError('maxLifetime', message);
}

/** What the feature adds to the argument of a callback, and to a leased browser. */
export interface LifetimeFacts {
  /**
   * Moves the end of the lease (option `lifetime`) later, at most to `maxLifetime`.
   *
   * @param ms Milliseconds to add.
   * @returns Milliseconds from now to the new end: fewer than expected if `maxLifetime` is reached.
   * @throws `InvalidOptionError` without the option `lifetime`, or if `ms` is no number above 0; `LeaseExpiredError` after the end;
   *   `LeaseOverError` after the release.
   */
  extend(this: void, ms: number): number;
}

/** Its events. */
export interface LifetimeSteps {
  /**
   * The lease ends after `remaining` ms (option `lifetime`). That is one minute, or half of the time that is left when the
   * lease begins or is extended, if that is less. Emitted again after `extend`.
   */
  'lease-expiring': { sessionId: string; remaining: number };
}
