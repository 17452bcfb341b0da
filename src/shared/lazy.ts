import { MissingLibraryError } from './errors.js';

/**
 * Imports a module at the first call and returns the same module afterwards: a repeated `import()` costs a turn of the
 * event loop, and several with loader hooks (tsx, ts-node, instrumentation). A failure is not kept.
 */
export function lazy<Module>(load: () => Promise<Module>): () => Promise<Module> {
  let loaded: Promise<Module> | undefined;
  return () =>
    (loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    }));
}

/**
 * Imports an optional peer at the first call, as `lazy` does. Rejects with a MissingLibraryError, which has the command that
 * installs it, if the package is missing or too old.
 */
export function lazyLibrary<Library>(name: string, load: () => Promise<Library>): () => Promise<Library> {
  return lazy(async () => {
    const { expectVersion } = await import('./library-version.js');
    expectVersion(name);
    return load().catch((cause: unknown) => {
      throw new MissingLibraryError(name, { cause });
    });
  });
}

export const loadWs = lazy(() => import('ws'));
