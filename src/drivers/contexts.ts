import { InvalidOptionError } from '../shared/errors.js';
import type { ContextChoice, Isolation, Workspace } from './connector.js';
import { withoutNotes } from '../noted-calls/noted-calls.js';
import type { SiteDataCleaner } from '../clean/site-data.js';
import { isError } from '../shared/globals.js';

interface AnyPage {
  isClosed(): boolean;
  close(): Promise<void>;
}

interface AnyContext<Page> {
  newPage(): Promise<Page>;
  close(): Promise<void>;
}

/** What only a library can do with contexts. */
export interface ContextLibrary<Browser, Page, Context, Options> {
  /** @throws InvalidOptionError for options that the library does not have. */
  check(options: Options): void;
  newContext(browser: Browser, options: Options | undefined): Promise<Context>;
  /** Whether a context or a page, which could not be opened, can be opened at the next try. */
  canRetry?(error: unknown): boolean;
  /** Whether a context with these options begins with data of sites, which clearing the data would remove, too. */
  hasSiteData(options: Options): boolean;
  /** Calls a function when the page has crashed. */
  onCrash(page: Page, call: () => void): void;
  /** Begins to note what a task does in the page and its context. */
  watch(context: Context, page: Page): Promise<SiteDataCleaner>;
  /** Removes what a task set in the library, such as permissions and routes. */
  reset(context: Context, page: Page, options: Options | undefined): Promise<unknown>;
}

/** Errors of a browser that has ended, which another browser may not have. */
const GONE = /closed|crash|disconnect|detached|timeout/i;

/** How often a context or a page is opened at most. */
const MOST_TRIES = 3;

/** Opens contexts over one connection. */
export class Contexts<
  Browser,
  Page extends AnyPage,
  Context extends AnyContext<Page>,
  Options extends object,
> {
  readonly #library: ContextLibrary<Browser, Page, Context, Options>;
  readonly #browser: Browser;
  readonly #own: Context;
  readonly #isConnected: () => boolean;
  readonly #httpLogins: () => number;

  /** @param own The browser's own context. */
  constructor(
    library: ContextLibrary<Browser, Page, Context, Options>,
    {
      browser,
      own,
      isConnected,
      httpLogins = () => 0,
    }: {
      browser: Browser;
      own: Context;
      isConnected: () => boolean;
      httpLogins?: (() => number) | undefined;
    },
  ) {
    this.#library = library;
    this.#browser = browser;
    this.#own = own;
    this.#isConnected = isConnected;
    this.#httpLogins = httpLogins;
  }

  /** Opens a context, or returns the browser's own one. */
  readonly open = async (choice: ContextChoice, options?: Options): Promise<Context> => {
    if (choice === 'default') return this.#own;
    if (options) this.#library.check(options);
    return this.attempt(options, () => this.#library.newContext(this.#browser, options));
  };

  /**
   * Opens a context or a page with options of the caller.
   *
   * @throws InvalidOptionError if the library refuses the options: no other browser would accept them.
   */
  async attempt<T>(options: Options | undefined, open: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await withoutNotes(open);
      } catch (cause) {
        if (tries < MOST_TRIES && this.#library.canRetry?.(cause)) continue;
        if (options === undefined || !isError(cause)) throw cause;
        if (cause instanceof InvalidOptionError || !this.#isConnected() || GONE.test(cause.message))
          throw cause;
        const message = `contextOptions were refused: ${cause.message}`;
        throw new InvalidOptionError('contextOptions', message, { cause });
      }
    }
  }

  /** Opens a page for one task after another. After a failure, nothing stays open. */
  readonly openWorkspace = async (
    given: Isolation,
    options?: Options,
  ): Promise<Workspace<{ browser: Browser; context: Context; page: Page }>> => {
    const library = this.#library;
    const hasSiteData = options !== undefined && library.hasSiteData(options);
    const isolation = given === 'storage' && hasSiteData ? 'context' : given;
    const ownsContext = isolation !== 'none' || options !== undefined;
    const context = await this.open(ownsContext ? 'new' : 'default', options);
    const page = await this.attempt(options, () => context.newPage()).catch(async (error: unknown) => {
      if (ownsContext) await context.close().catch(() => {});
      throw error;
    });
    const cleaner =
      isolation === 'storage' ? await withoutNotes(() => library.watch(context, page)) : undefined;
    const loginsBefore = this.#httpLogins();
    let hasCrashed = false;
    library.onCrash(page, () => (hasCrashed = true));
    return {
      handles: { browser: this.#browser, context, page },
      reset: async () => {
        if (isolation === 'context' || hasCrashed || page.isClosed()) return false;
        if (!cleaner) return true;
        // Only the end of the context ends a login. Nothing shows in which one it was.
        if (this.#httpLogins() !== loginsBefore) return false;
        const reset = () => library.reset(context, page, options);
        const [isCleared] = await Promise.all([cleaner.clear(), withoutNotes(reset)]);
        return isCleared;
      },
      close: () =>
        withoutNotes(async () => {
          if (ownsContext) await context.close();
          else if (!page.isClosed()) await page.close();
        }),
    };
  };
}
