import { MissingLibraryError } from '../errors/index.js';
import { lazy } from '../internal/lazy.js';

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
