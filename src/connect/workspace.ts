import type { Isolation, Workspace } from './connector.js';
import type { SiteDataCleaner } from './site-data.js';

/** The library-specific parts of a workspace. */
export interface WorkspaceParts<Handles> {
  readonly isolation: Isolation;
  readonly handles: Handles & {
    readonly page: { isClosed(): boolean; close(): Promise<void> };
    readonly context: { close(): Promise<void> };
  };
  /** Clears what a site has stored, for `'storage'`. */
  readonly cleaner: SiteDataCleaner | undefined;
  /** Removes what the task set in the library, such as permissions and routes. */
  readonly resetLibrary: () => Promise<unknown>;
  readonly hasCrashed: () => boolean;
}

export function workspaceOf<Handles>(parts: WorkspaceParts<Handles>): Workspace<Handles> {
  const { isolation, handles, cleaner, resetLibrary, hasCrashed } = parts;
  const { page, context } = handles;
  return {
    handles,
    reset: async () => {
      if (isolation === 'context' || hasCrashed() || page.isClosed()) return false;
      if (!cleaner) return true;
      const [isCleared] = await Promise.all([cleaner.clear(), resetLibrary()]);
      return isCleared;
    },
    close: async () => {
      if (isolation !== 'none') await context.close();
      else if (!page.isClosed()) await page.close();
    },
  };
}
