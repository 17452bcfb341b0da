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
