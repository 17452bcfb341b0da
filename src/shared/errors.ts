import { isRecord } from './json.js';
import { redact } from './redact.js';

/** Marks an error as one of this library's, from whichever copy of it. */
const OWN: unique symbol = Symbol.for('pooled-browser.error');

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

/** An argument or option that is not allowed. Thrown before anything is sent. */
export class InvalidOptionError extends PooledBrowserError {
  override readonly name = 'InvalidOptionError' as const;
  declare readonly code: 'ERR_INVALID_OPTION';

  /** The option at fault, such as `tags` or `retry.factor`. */
  readonly option: string;

  constructor(option: string, message: string, facts?: ErrorFacts) {
    super(message, 'ERR_INVALID_OPTION', facts);
    this.option = option;
  }
}

/** Refuses an option that does not exist: a misspelt one would be ignored in silence. */
export function rejectUnknownOptions(options: unknown, known: readonly string[], caller: string): void {
  if (!isRecord(options)) throw new InvalidOptionError('options', `${caller} takes an object of options.`);
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  throw new InvalidOptionError(unknown, `${caller} has no option ${unknown}. It takes: ${known.join(', ')}.`);
}

/** An optional peer that this call needs is not installed. */
export class MissingLibraryError extends PooledBrowserError {
  override readonly name = 'MissingLibraryError' as const;
  declare readonly code: 'ERR_MISSING_LIBRARY';

  /** The package's name on npm. */
  readonly library: string;

  constructor(library: string, facts?: ErrorFacts) {
    super(
      `The package ${library} is needed here and could not be loaded. Install it: npm install ${library}`,
      'ERR_MISSING_LIBRARY',
      facts,
    );
    this.library = library;
  }
}

const MOST_CAUSES = 8;

/**
 * A cause that is safe to show. Drivers and HTTP clients hang URLs, headers and sockets on their errors,
 * and websocket failures come as events that are no errors at all; only name, message, code, stack and cause are kept.
 */
export function withoutSecrets(cause: unknown, depth = 0): unknown {
  if (isPooledBrowserError(cause)) return cause;
  if (typeof cause === 'string') return redact(cause);
  if (typeof cause !== 'object' || cause === null) return cause;
  if (depth === MOST_CAUSES) return undefined;
  const { message, name, code, stack, cause: deeper, error } = cause as Record<string, unknown>;
  const copy = new Error(redact(typeof message === 'string' ? message : 'no message'));
  copy.name = typeof name === 'string' ? redact(name) : 'Error';
  copy.stack = redact(typeof stack === 'string' ? stack : `${copy.name}: ${copy.message}`);
  if (typeof code === 'string') Object.assign(copy, { code: redact(code) });
  const inner = withoutSecrets(deeper ?? error, depth + 1);
  if (inner !== undefined) copy.cause = inner;
  return copy;
}
