/** Milliseconds until a page must have become blank, and until the browser must have wiped. */
const WIPE_TIMEOUT = 2000;

const BLANK = 'about:blank';

/**
 * Wipes what a task left in its page and context, so that the next one can have both. A new page costs a process, which
 * is most of what a small page costs; so the page is made blank by a script of its own, in the process that it has.
 *
 * Only what is known to be complete is done: a task that was at more than one origin, frames included, or had a pop-up,
 * a download or a crash, may have left things where nobody can reach them any more. Its workspace is replaced.
 */
export class Wiper {
  readonly #send: (method: string, params?: object) => Promise<unknown>;
  readonly #origins = new Set<string>();
  #strayed = false;
  #onBlank = () => {};

  /** @param send Sends a CDP command to the page. */
  constructor(send: (method: string, params?: object) => Promise<unknown>) {
    this.#send = send;
  }

  /** To be told of every document, in frames too. */
  readonly onNavigated = (url: string, isMain: boolean): void => {
    if (isMain && url === BLANK) this.#onBlank();
    else if (/^https?:/.test(url)) this.#origins.add(new URL(url).origin);
    // Other schemes keep things too, each in its own way. These two keep nothing of their own.
    else if (!/^(about|data):/.test(url)) this.stray();
  };

  /** The task did something that can't be wiped. */
  readonly stray = (): void => {
    this.#strayed = true;
  };

  /** False, or a rejection, when not all is known to be wiped. */
  async wipe(): Promise<boolean> {
    if (!this.#isSimple) return false;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(resolve, WIPE_TIMEOUT, false);
    });
    const isWiped = await Promise.race([this.#wipe(), late]).finally(() => clearTimeout(timer));
    this.#origins.clear();
    return isWiped;
  }

  get #isSimple(): boolean {
    return !this.#strayed && this.#origins.size <= 1;
  }

  async #wipe(): Promise<boolean> {
    const blank = new Promise<void>((resolve) => {
      this.#onBlank = resolve;
    });
    await Promise.all([
      // First: while the page changes its document, the browser may refuse this.
      this.#send('Page.resetNavigationHistory'),
      // A script can't put anything in the place of `location`.
      this.#send('Runtime.evaluate', { expression: `location.replace('${BLANK}')` }),
      blank,
    ]);
    // A navigation that was under way may have come first.
    if (!this.#isSimple) return false;
    await Promise.all([
      ...[...this.#origins].flatMap((origin) => this.#wipeOrigin(origin)),
      this.#send('Network.clearBrowserCookies'),
      this.#send('Network.clearBrowserCache'),
      this.#send('Runtime.evaluate', { expression: "window.name = ''" }),
    ]);
    return true;
  }

  #wipeOrigin(origin: string): Promise<unknown>[] {
    const storageId = { storageKey: `${origin}/`, isLocalStorage: false };
    return [
      // The blank page is still of this origin: its sessionStorage can be reached from here, and from nowhere else.
      this.#send('DOMStorage.clear', { storageId }),
      this.#send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' }),
    ];
  }
}
