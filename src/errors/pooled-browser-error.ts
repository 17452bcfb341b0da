import { redact } from '../internal/redact.js';
import { OWN, withoutSecrets } from './without-secrets.js';

/** What is known about the run in which an error arose. */
export interface ErrorFacts {
  /** Id or name of the pool. */
  pool?: string | undefined;
  /** `session_id` of the leased browser. */
  sessionId?: string | undefined;
  /** Acquire requests sent so far. */
  attempts?: number | undefined;
  /** Milliseconds since the call began. */
  elapsed?: number | undefined;
  /** The service's id of the request, for its support. */
  requestId?: string | undefined;
  /** The error behind this one. Errors of other libraries are kept as copies without secrets. */
  cause?: unknown;
}

/** Base of every error that this library throws of its own. */
export class PooledBrowserError extends Error {
  override readonly name: string = 'PooledBrowserError';

  /** Stable, machine-readable: branch on this, never on the message. */
  readonly code: string;

  declare readonly pool?: string;
  declare readonly sessionId?: string;
  declare readonly attempts?: number;
  declare readonly elapsed?: number;
  declare readonly requestId?: string;

  constructor(message: string, code: string, { cause, ...facts }: ErrorFacts = {}) {
    super(redact(message), cause === undefined ? {} : { cause: withoutSecrets(cause) });
    this.code = code;
    for (const [fact, value] of Object.entries(facts)) {
      if (value === undefined) continue;
      const shown = typeof value === 'string' ? redact(value) : value;
      Object.defineProperty(this, fact, { value: shown, enumerable: true });
    }
  }
}

Object.defineProperty(PooledBrowserError.prototype, OWN, { value: true });

/** True for this library's own errors, from whichever copy of it. */
export function isPooledBrowserError(error: unknown): error is PooledBrowserError {
  return error instanceof Error && OWN in error;
}
