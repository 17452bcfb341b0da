import { isRecord } from '../internal/is-record.js';
import { redact } from '../internal/redact.js';

const MOST_CAUSES = 8;

/**
 * A cause that is safe to show. Drivers and HTTP clients hang URLs, headers and sockets on their errors,
 * and websocket failures come as events that are no errors at all; only name, message, code, stack and cause are kept.
 */
export function withoutSecrets(cause: unknown, depth = 0): unknown {
  if (isOwnError(cause)) return cause;
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

/** Our own errors were cleaned when they were made. Named, not imported: the base class imports this file. */
function isOwnError(value: unknown): boolean {
  return isRecord(value) && value instanceof Error && OWN in value;
}

/** Marks an error as one of ours. */
export const OWN: unique symbol = Symbol.for('pooled-browser.error');
