import { MissingLibraryError } from './errors.js';
import { importForNode, lazy } from './lazy.js';

/**
 * Imports an optional peer at the first call, as `lazy` does. Rejects with a MissingLibraryError, which has the command that
 * installs it, if the package is missing or too old.
 *
 * @param others The peers that the same calls need: the error names those that are missing, too.
 */
export function lazyLibrary<Library>(
  name: string,
  load: () => Promise<Library>,
  others: readonly string[] = [],
): () => Promise<Library> {
  return lazy(async () => {
    const { expectVersion, versionOf } = await import('./library-version.js');
    expectVersion(name);
    return importForNode(name, load).catch((cause: unknown) => {
      const missing = others.filter((other) => versionOf(other) === undefined);
      throw new MissingLibraryError(name, { cause, others: missing });
    });
  });
}
