import type { Browser, BrowserContext, Page } from 'playwright-core';
import { allSettled } from '../shared/abort.js';
import type { ContextFiles } from './connector.js';

interface File {
  readonly path: string;
  readonly context: BrowserContext;
  /** Writes the file, if Playwright can. */
  write(): Promise<void>;
}

/**
 * Notes the HAR files and videos that Playwright writes only in `context.close()`: a context that ends with its connection, or with
 * the browser, loses them in silence.
 */
export class PlaywrightFiles implements ContextFiles {
  /** Playwright closes the connection with the browser's own context. */
  readonly #own: BrowserContext;
  readonly #reason: string;
  readonly #files = new Set<File>();
  /** The contexts with files. */
  readonly #watched = new WeakSet<BrowserContext>();
  readonly #closing = new WeakMap<BrowserContext, Promise<void>>();

  constructor(browser: Browser, reason: string) {
    this.#own = browser.contexts()[0]!;
    this.#reason = reason;
    this.#watch(this.#own);
    const newContext = browser.newContext.bind(browser);
    // `newPage` calls it, too.
    browser.newContext = async (options) => {
      const context = await newContext(options);
      this.#watch(context);
      for (const path of [options?.recordHar?.path, options?.recordVideo?.dir])
        if (path !== undefined) this.#note(context, path);
      return context;
    };
  }

  unwritten(): readonly string[] {
    return [...new Set([...this.#files].map(({ path }) => path))];
  }

  write(): Promise<void> {
    return allSettled([...this.#files].map((file) => file.write()));
  }

  /** Closes all but the browser's own one. */
  closeAll(contexts: readonly BrowserContext[]): Promise<void> {
    const opened = contexts.filter((one) => one !== this.#own);
    return allSettled(opened.map((one) => this.#close(one)));
  }

  /** Of a context that is being closed, Playwright's own method returns before anything is written. */
  async #close(context: BrowserContext): Promise<void> {
    await (this.#closing.get(context) ?? context.close({ reason: this.#reason }));
  }

  #watch(context: BrowserContext): void {
    this.#watchRoutes(context, context);
    const watchPage = (page: Page) => this.#watchRoutes(context, page);
    context.pages().forEach(watchPage);
    context.on('page', watchPage);
    this.#watchHar(context);
  }

  #watchRoutes(context: BrowserContext, owner: Pick<BrowserContext, 'routeFromHAR'>): void {
    const routeFromHAR = owner.routeFromHAR.bind(owner);
    owner.routeFromHAR = async (path, options) => {
      await routeFromHAR(path, options);
      if (options?.update) this.#note(context, path);
    };
  }

  #watchHar(context: BrowserContext): void {
    const { tracing } = context;
    // Older versions have no such method.
    if (!('startHar' in tracing)) return;
    const startHar = tracing.startHar.bind(tracing);
    const stopHar = tracing.stopHar.bind(tracing);
    let file: File | undefined;
    tracing.startHar = async (path, options) => {
      const started = await startHar(path, options);
      file = this.#note(context, path, () => tracing.stopHar());
      return started;
    };
    tracing.stopHar = async () => {
      await stopHar();
      if (file) this.#files.delete(file);
    };
  }

  #note(context: BrowserContext, path: string, stop = async () => {}): File {
    const write = context === this.#own ? stop : () => this.#close(context);
    const file = { path, context, write };
    this.#files.add(file);
    if (context !== this.#own) this.#watchClose(context);
    return file;
  }

  /** Remembers the first call of `close`, which is the one that writes. */
  #watchClose(context: BrowserContext): void {
    if (this.#watched.has(context)) return;
    this.#watched.add(context);
    let isOver = false;
    context.once('close', () => (isOver = true));
    const close = context.close.bind(context);
    context.close = (options) => {
      const closed = close(options);
      // A context that has ended before writes nothing.
      if (isOver || this.#closing.has(context)) return closed;
      this.#closing.set(context, closed);
      const forget = () => {
        for (const file of this.#files) if (file.context === context) this.#files.delete(file);
      };
      closed.then(forget, () => {});
      return closed;
    };
  }
}
