import { clock } from '../shared/clock.js';
import { ProxyError } from '../shared/network.js';
import { reachabilities } from '../shared/process-state.js';
import type { ErrorFacts } from '../shared/errors.js';
import { PoolConnectionError } from '../shared/service-errors.js';
import { isLoopback } from '../shared/urls.js';
import { isError } from '../shared/globals.js';

/**
 * Records whether this process could ever connect to a service; this outlives the pools. A service that was reached
 * before is probably restarting; a service that was never reached may not exist.
 */
export class Reachability {
  /** The last error of a connection that could not be opened. */
  lastFailure: unknown;
  readonly #failures = new WeakSet<object>();
  #wasReached = false;
  /** Time of the first failure. */
  #failingSince: number | undefined;

  static of(origin: string): Reachability {
    const known = (reachabilities.get(origin) as Reachability | undefined) ?? new Reachability();
    reachabilities.set(origin, known);
    return known;
  }

  /** A connection was opened. */
  connected(): void {
    this.#wasReached = true;
  }

  /** A connection could not be opened. */
  failed(error: Error): void {
    this.#failures.add(error);
    this.#failingSince ??= clock.now();
    this.lastFailure = error;
  }

  /** Returns true for the error of a connection that could not be opened: the request was not sent. */
  isFailure(error: unknown): boolean {
    return isError(error) && this.#failures.has(error);
  }

  /** Milliseconds until a service that was never reached counts as unreachable; `Infinity` for all other services. */
  timeLeft(timeout: number): number {
    if (this.#wasReached) return Number.POSITIVE_INFINITY;
    if (this.#failingSince === undefined) return timeout;
    return timeout - (clock.now() - this.#failingSince);
  }
}

/** The server at this address does not support TLS. */
const NO_TLS = /wrong.version.number|packet.length.too.long/i;

/** Certificate errors, which are permanent. */
const CERTIFICATE = /^(CERT_\w+|ERR_TLS_CERT_\w+|\w*SELF_SIGNED\w*|UNABLE_TO_\w+|DEPTH_ZERO_\w+)$/;

/** The two sides have no version or cipher of TLS in common. */
const NO_COMMON_TLS = /^ERR_SSL_\w*(HANDSHAKE_FAILURE|PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL)$/;

/** Creates the error for a connection that could not be opened. */
export function unreachable(url: URL, cause: unknown, facts: ErrorFacts): PoolConnectionError {
  const { origin, hostname } = url;
  const { code = '', message } = cause as NodeJS.ErrnoException;
  const fail = (text: string, isPermanent: boolean) =>
    new PoolConnectionError(`The service at ${origin} ${text}`, 'ERR_POOL_UNREACHABLE', {
      ...facts,
      isPermanent,
      cause,
    });
  if (NO_TLS.test(`${code} ${message}`)) {
    const plain = `Did you mean ${origin.replace('https:', 'http:')}?`;
    return fail(`does not speak TLS. ${isLoopback(hostname) ? plain : 'Check the port in baseUrl.'}`, true);
  }
  const what = `could not be reached: ${explain(cause)}.`;
  if (cause instanceof ProxyError) return fail(what, cause.isPermanent);
  if (CERTIFICATE.test(code)) {
    return fail(`${what} Check baseUrl. More trusted certificates: option ca, or NODE_EXTRA_CA_CERTS.`, true);
  }
  return fail(`${what} Check baseUrl and the network.`, NO_COMMON_TLS.test(code));
}

/** Describes an error of the network on one line. */
export function explain(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  // OpenSSL reports the place in its source around a few words.
  const [, reason] = /:SSL routines:[^:]*:([^:]+)/.exec(message) ?? [];
  // An error for several addresses has a code and no message.
  return reason ?? (message || code || 'unknown failure');
}
