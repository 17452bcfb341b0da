import { hasNodeGlobals } from './globals.js';

/**
 * Imports a module at the first call and returns the same module afterwards: a repeated `import()` costs an iteration of the
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
 * Imports a package for Node. Jest evaluates packages with the globals of the test, and takes their files for pages in jsdom: where
 * the package can't work so, Node's own `require` evaluates it outside of the environment.
 */
export async function importForNode<Module>(name: string, load: () => Promise<Module>): Promise<Module> {
  if (hasNodeGlobals()) return load();
  const { createRequire } = process.getBuiltinModule('node:module');
  return createRequire(import.meta.url)(name) as Module;
}

export const loadWs = lazy(() => importForNode('ws', () => import('ws')));
