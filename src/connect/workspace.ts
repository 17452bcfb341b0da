import type { ContextChoice, Isolation, Workspace } from './connector.js';
import { withContextOptions } from './context-options.js';
import type { SiteDataCleaner } from './site-data.js';

interface AnyPage {
  isClosed(): boolean;
  close(): Promise<void>;
}

interface AnyContext<Page> {
  newPage(): Promise<Page>;
  close(): Promise<void>;
}

/** What only a library can do for a workspace. */
export interface WorkspaceLibrary<Page, Context, Options> {
  /** Whether a context with these options begins with data of sites, which clearing the data would remove, too. */
  hasSiteData(options: Options): boolean;
  /** Calls a function when the page has crashed. */
  onCrash(page: Page, call: () => void): void;
  /** Begins to note what a task does in the page and its context. */
  watch(context: Context, page: Page): Promise<SiteDataCleaner>;
  /** Removes what a task set in the library, such as permissions and routes. */
  reset(context: Context, page: Page, options: Options | undefined): Promise<unknown>;
}

/** The workspace to open. */
interface WorkspacePlan<Context, Options> {
  readonly isolation: Isolation;
  readonly contextOptions: Options | undefined;
  isConnected(this: void): boolean;
  openContext(this: void, choice: ContextChoice, options?: Options): Promise<Context>;
}

/** Opens a page for one task after another. After a failure, nothing stays open. */
export async function openWorkspace<
  Browser,
  Page extends AnyPage,
  Context extends AnyContext<Page>,
  Options extends object,
>(
  browser: Browser,
  library: WorkspaceLibrary<Page, Context, Options>,
  { isolation: given, contextOptions, isConnected, openContext }: WorkspacePlan<Context, Options>,
): Promise<Workspace<{ browser: Browser; context: Context; page: Page }>> {
  const hasSiteData = contextOptions !== undefined && library.hasSiteData(contextOptions);
  const isolation = given === 'storage' && hasSiteData ? 'context' : given;
  const ownsContext = isolation !== 'none' || contextOptions !== undefined;
  const context = await openContext(ownsContext ? 'new' : 'default', contextOptions);
  const opening = withContextOptions(contextOptions, isConnected, () => context.newPage());
  const page = await opening.catch(async (error: unknown) => {
    if (ownsContext) await context.close().catch(() => {});
    throw error;
  });
  const cleaner = isolation === 'storage' ? await library.watch(context, page) : undefined;
  let hasCrashed = false;
  library.onCrash(page, () => (hasCrashed = true));
  return {
    handles: { browser, context, page },
    reset: async () => {
      if (isolation === 'context' || hasCrashed || page.isClosed()) return false;
      if (!cleaner) return true;
      const [isCleared] = await Promise.all([cleaner.clear(), library.reset(context, page, contextOptions)]);
      return isCleared;
    },
    close: async () => {
      if (ownsContext) await context.close();
      else if (!page.isClosed()) await page.close();
    },
  };
}
