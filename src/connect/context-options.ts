import { closestMatch } from 'leven';
import { InvalidOptionError } from '../shared/errors.js';

/** What is known about the options of a library's contexts. */
export interface KnownOptions {
  /** Name of the library. */
  readonly library: string;
  /** The names of its options. A newer version, or a variant of the library, may have more. */
  readonly names: readonly string[];
  /** Options that the library does not have, and what to do instead. */
  readonly missing: Readonly<Record<string, string>>;
}

/** Options of a browser, not of a context. */
export const OF_BROWSER = 'The pool starts its browsers: configure them there.';

/** Most letters by which a misspelled name differs. */
const MOST_TYPOS = 2;

/**
 * Refuses options that the library would ignore: those of another library, and misspelled ones.
 *
 * @throws InvalidOptionError
 */
export function refuseUnknown(given: object, { library, names, missing }: KnownOptions): void {
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue;
    const lower = names.find((one) => one.toLowerCase() === name.toLowerCase());
    const similar = lower ?? closestMatch(name, names, { maxDistance: MOST_TYPOS });
    const advice = Object.hasOwn(missing, name) ? missing[name] : similar && `Did you mean ${similar}?`;
    if (advice === undefined) continue;
    throw new InvalidOptionError(
      `contextOptions.${name}`,
      `A context of ${library} has no option ${name}. ${advice}`,
    );
  }
}

/** Errors of a browser that is gone, which another browser may not have. */
const GONE = /closed|crash|disconnect|detached|timeout/i;

/**
 * Opens a context with options of the caller.
 *
 * @param isConnected Whether the library's connection is open.
 * @throws InvalidOptionError if the library refuses the options: no other browser would accept them.
 */
export async function withContextOptions<T>(
  contextOptions: object | undefined,
  isConnected: () => boolean,
  open: () => Promise<T>,
): Promise<T> {
  try {
    return await open();
  } catch (cause) {
    if (contextOptions === undefined || !(cause instanceof Error)) throw cause;
    if (cause instanceof InvalidOptionError || !isConnected() || GONE.test(cause.message)) throw cause;
    throw new InvalidOptionError('contextOptions', `contextOptions were refused: ${cause.message}`, {
      cause,
    });
  }
}
