import { MissingLibraryError } from './errors.js';
import { importForNode, lazy } from './lazy.js';

/**
 * Imports an optional peer at the first call, as `lazy` does. Rejects with a MissingLibraryError, which has the command that
 * installs it, if the package is missing or too old.
 */
export function lazyLibrary<Library>(name: string, load: () => Promise<Library>): () => Promise<Library> {
  return lazy(async () => {
    const { expectVersion } = await import('./library-version.js');
    expectVersion(name);
    return importForNode(name, load).catch((cause: unknown) => {
      throw new MissingLibraryError(name, { cause });
    });
  });
}
