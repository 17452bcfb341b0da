import { MissingLibraryError } from './errors.js';
import type { Options } from 'p-retry';

/**
 * Loads a module with the first call, and gives what it loaded with the others: importing it again would cost a turn of
 * the event loop, and several where the process has loader hooks (tsx, ts-node, instrumentation). A failure is not kept.
 */
export function lazy<Module>(load: () => Promise<Module>): () => Promise<Module> {
  let loaded: Promise<Module> | undefined;
  return () =>
    (loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    }));
}

const library = lazy(() => import('p-retry'));

/** p-retry, loaded with the first call: whoever only imports this library does not pay for it. */
export async function withRetries<Value>(attempt: () => Promise<Value>, options: Options): Promise<Value> {
  const { default: pRetry } = await library();
  return pRetry(attempt, options);
}

/** The websocket library: not an optional one. */
export const loadWs = lazy(() => import('ws'));

/** Imports an optional peer; one that is missing is named with the command that installs it. */
export async function loadLibrary<Library>(name: string, load: () => Promise<Library>): Promise<Library> {
  try {
    return await load();
  } catch (cause) {
    throw new MissingLibraryError(name, { cause });
  }
}
