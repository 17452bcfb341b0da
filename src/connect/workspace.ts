import type { Isolation, Workspace } from './connector.js';
import type { SiteDataCleaner } from './site-data.js';

/** How a workspace isolates its tasks, and whether its context was opened for it. */
export interface WorkspaceKind {
  readonly isolation: Isolation;
  readonly ownsContext: boolean;
}

/** The library-specific parts of a workspace. */
export interface WorkspaceParts<Handles> extends WorkspaceKind {
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

/** @param hasData Whether `contextOptions` puts data of sites into a context. */
export function workspaceKind(
  isolation: Isolation,
  contextOptions: object | undefined,
  hasData: boolean,
): WorkspaceKind {
  return {
    // The cleaner would also remove that data.
    isolation: isolation === 'storage' && hasData ? 'context' : isolation,
    ownsContext: isolation !== 'none' || contextOptions !== undefined,
  };
}

/** Opens the page of a workspace. After a failure, the context that was opened for it is closed. */
export async function firstPage<Page>(
  context: { newPage(): Promise<Page>; close(): Promise<void> },
  { ownsContext }: WorkspaceKind,
): Promise<Page> {
  try {
    return await context.newPage();
  } catch (error) {
    if (ownsContext) await context.close().catch(() => {});
    throw error;
  }
}

export function workspaceOf<Handles>(parts: WorkspaceParts<Handles>): Workspace<Handles> {
  const { isolation, ownsContext, handles, cleaner, resetLibrary, hasCrashed } = parts;
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
      if (ownsContext) await context.close();
      else if (!page.isClosed()) await page.close();
    },
  };
}
