import { propertyOf, showValue } from './json.js';
import { endTasks } from './process-state.js';
import { printableLines, redact, shortened } from './redact.js';
import { isError } from './globals.js';

/** Marks an error of this library, also of another copy of it. */
const OWN: unique symbol = Symbol.for('pooled-browser.error');

/** Facts about the call in which an error occurred. */
export interface ErrorFacts {
  /** Id or name of the pool. */
  pool?: string | undefined;
  /** Id of the leased session. */
  sessionId?: string | undefined;
  /** Number of acquire requests so far. */
  attempts?: number | undefined;
  /** Milliseconds since the call began; of a `ReleaseError`, since the release began. */
  elapsed?: number | undefined;
  /** The service's id of the request (`x-request-id`), for questions to its support. */
  requestId?: string | undefined;
  /** The underlying error. Errors of other libraries are copied without secrets. */
  cause?: unknown;
}

/** Base class of all errors of this library. */
export class PooledBrowserError extends Error {
  /** Name of the class, also in minified code. */
  override readonly name: string = 'PooledBrowserError';

  /** Stable, machine-readable code. Compare the code, never the message. */
  readonly code: string = 'ERR_POOLED_BROWSER';

  /** Id or name of the pool. */
  declare readonly pool?: string;
  /** Id of the leased session. */
  declare readonly sessionId?: string;
  /** Number of acquire requests so far. */
  declare readonly attempts?: number;
  /** Milliseconds since the call began; of a `ReleaseError`, since the release began. */
  declare readonly elapsed?: number;
  /** The service's id of the request (`x-request-id`), for questions to its support. */
  declare readonly requestId?: string;

  constructor(message: string, facts: ErrorFacts = {}) {
    const { cause, ...rest } = facts;
    super(safe(message), cause === undefined ? {} : { cause: withoutSecrets(cause) });
    for (const [fact, value] of Object.entries(rest)) {
      if (value === undefined) continue;
      const shown = typeof value === 'string' ? redact(value) : value;
      Object.defineProperty(this, fact, { value: shown, enumerable: true });
    }
  }
}

Object.defineProperty(PooledBrowserError.prototype, OWN, { value: true });

/** Whether a value is an error of this library, of any copy of it. */
export function isPooledBrowserError(error: unknown): error is PooledBrowserError {
  try {
    return isError(error) && OWN in error;
  } catch {
    // A callback may throw any value, such as a revoked proxy.
    return false;
  }
}

/**
 * Remembers the lines that called a public function. The returned function adds them to the stack of an error of this
 * library: between timers, sockets and retries, the stack would show only our own code.
 */
export function callSite(): <T>(work: Promise<T>) => Promise<T> {
  const site: { stack?: string } = {};
  Error.captureStackTrace(site, callSite);
  return (work) =>
    work.catch(async (error: unknown) => {
      if (endTasks.ending) await endTasks.ending;
      // The stack is formatted only now.
      if (isPooledBrowserError(error)) addLines(error, site.stack);
      throw error;
    });
}

/**
 * Adds a sentence behind a part of an error's message, once, and in its stack. Only these texts change: the error is the caller's
 * own.
 */
export function addAdvice(error: Pick<Error, 'message' | 'stack'>, part: string, advice: string): void {
  const { message, stack } = error;
  if (message.includes(advice)) return;
  const explained = `${part}. ${advice}`;
  error.message = message.replace(part, () => explained);
  if (stack !== undefined && !stack.includes(advice)) error.stack = stack.replace(part, () => explained);
}

/** The file and line at the end of a line of a stack. */
const PLACE = /^\(?(.+:\d+):\d+\)?$/;

const FRAME = /^\s+at /;

function addLines(error: Error, stack: unknown): void {
  // A tool can replace the format of all stacks.
  if (typeof error.stack !== 'string' || typeof stack !== 'string') return;
  const known = new Set(error.stack.split('\n').map(placeOf));
  const lines = stack.split('\n').filter((line) => FRAME.test(line) && !known.has(placeOf(line)));
  error.stack = [error.stack, ...lines].join('\n');
}

function placeOf(line: string): string | undefined {
  // Not one pattern for the whole line, which may be a long line of the message.
  return FRAME.test(line) ? PLACE.exec(line.slice(line.lastIndexOf(' ') + 1))?.[1] : undefined;
}

/**
 * An argument or option has a value that is not allowed. Thrown before any request is sent, or when the leased browser turns out to
 * lack what the option needs: it is released, and no other one leased.
 */
export class InvalidOptionError extends PooledBrowserError {
  override readonly name = 'InvalidOptionError' as const;
  override readonly code = 'ERR_INVALID_OPTION' as const;

  /** The name of the option, such as `tags` or `retry.factor`. */
  readonly option: string;

  constructor(option: string, message: string, facts?: ErrorFacts) {
    super(message, facts);
    this.option = option;
  }
}

/** A library that the call needs is not installed, or is too old. */
export class MissingLibraryError extends PooledBrowserError {
  override readonly name = 'MissingLibraryError' as const;
  override readonly code = 'ERR_MISSING_LIBRARY' as const;

  /** Name of the npm package. */
  readonly library: string;
  /** The installed version; missing if none was found. */
  declare readonly installed?: string;

  constructor(
    library: string,
    facts: ErrorFacts & { installed?: string; oldest?: string; others?: readonly string[] } = {},
  ) {
    const { installed, oldest, others = [], ...rest } = facts;
    const all = [library, ...others];
    const [packages, them] = others.length === 0 ? ['package', 'it'] : ['packages', 'them'];
    const message = installed
      ? `${library} ${installed} is installed, but pooled-browser needs ${oldest} or newer. Install it: npm install ${library}@latest`
      : `The ${packages} ${all.join(' and ')} could not be loaded. Install ${them}: npm install ${all.join(' ')}`;
    super(message, rest);
    this.library = library;
    if (installed) this.installed = installed;
  }
}

/** Returns a text as a sentence, so that another sentence can be appended. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  return /[.!?…]\)?$/.test(trimmed) ? trimmed : `${trimmed}.`;
}

const MOST_CAUSES = 8;

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

/** Parses a time above 0 with its unit, such as `500ms`, `30s` or `5m`, as milliseconds. */
export function parseTime(text: string): number | undefined {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
  const milliseconds = Number(number) * UNITS[unit as keyof typeof UNITS];
  return milliseconds > 0 ? milliseconds : undefined;
}

/** Formats milliseconds for a message: `250 ms`, `1.5 s`. */
export function duration(milliseconds: number): string {
  const rounded = Math.round(milliseconds);
  return rounded < 1000 ? `${rounded} ms` : `${Math.round(rounded / 100) / 10} s`;
}

/**
 * Copies an error so that it is safe to print. Automation libraries and HTTP clients attach URLs, headers and sockets to
 * their errors, and WebSocket failures are events instead of errors; the copy has name, message, code, stack and cause.
 */
export function withoutSecrets(cause: unknown, depth = 0): unknown {
  if (isPooledBrowserError(cause)) return cause;
  if (typeof cause === 'string') return safe(cause);
  if (typeof cause !== 'object' || cause === null) return cause;
  if (depth === MOST_CAUSES) return undefined;
  const properties = ['message', 'name', 'code', 'stack', 'cause', 'error'];
  const [message, name, code, stack, deeper, error] = properties.map((property) =>
    propertyOf(cause, property),
  );
  const copy = new Error(safe(typeof message === 'string' ? message : 'no message'));
  copy.name = typeof name === 'string' ? safe(name) : 'Error';
  copy.stack = safe(typeof stack === 'string' ? stack : `${copy.name}: ${copy.message}`);
  if (typeof code === 'string') Object.assign(copy, { code: safe(code) });
  const inner = withoutSecrets(deeper ?? error, depth + 1);
  if (inner !== undefined) copy.cause = inner;
  return copy;
}

/** Returns what was thrown, as an error: callers and libraries may throw any value. */
export function asError(thrown: unknown): Error {
  try {
    return isError(thrown) ? thrown : new Error(safe(`${showValue(thrown)} was thrown`));
  } catch {
    return new Error('a value that can not be read was thrown');
  }
}

/** Longest message or stack, in characters: a library may quote a whole page. */
const LONGEST_TEXT = 100_000;

/** Removes secrets and escapes control characters, because errors of libraries are often printed unchanged. */
function safe(text: string): string {
  return printableLines(shortened(text, LONGEST_TEXT));
}
