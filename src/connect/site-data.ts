import { raceTimeout } from '../shared/abort.js';
import { duration } from '../shared/errors.js';

/** Time until the page must be blank, and then until the browser must have cleared its data, in ms. */
const CLEAR_TIMEOUT = 2000;

const BLANK = 'about:blank';

/**
 * Clears what a task left in its page and context, so that the next task can use both. A new page needs a new process,
 * which costs more than a small page; so a script makes the page blank in its own process.
 *
 * A task that visited several origins, opened a popup, started a download or crashed may have left data that no command
 * reaches. Its workspace is replaced.
 */
export class SiteDataCleaner {
  readonly #send: (method: string, params?: object) => Promise<unknown>;
  readonly #origins = new Set<string>();
  #isUnsafe = false;
  #onBlank = () => {};

  /** @param send Sends a CDP command to the page. */
  constructor(send: (method: string, params?: object) => Promise<unknown>) {
    this.#send = send;
  }

  /** Must be called for every document of the page and of its frames. */
  readonly onNavigated = (url: string, isMain: boolean): void => {
    if (isMain && url === BLANK) this.#onBlank();
    else if (/^https?:/.test(url)) this.#origins.add(new URL(url).origin);
    // about: and data: store nothing. Every other scheme stores data in its own way.
    else if (!/^(about|data):/.test(url)) this.markUnsafe();
  };

  /** Marks the workspace as not reusable: no command can undo what the task did. */
  readonly markUnsafe = (): void => {
    this.#isUnsafe = true;
  };

  /** Resolves to false, or rejects, if some data may be left. */
  async clear(): Promise<boolean> {
    if (!this.#canClear) return false;
    await inTime(() => this.#makeBlank());
    // An earlier navigation may have completed first.
    if (!this.#canClear) return false;
    await inTime(() => this.#clearData());
    this.#origins.clear();
    return true;
  }

  get #canClear(): boolean {
    return !this.#isUnsafe && this.#origins.size <= 1;
  }

  async #makeBlank(): Promise<void> {
    const blank = new Promise<void>((resolve) => {
      this.#onBlank = resolve;
    });
    await Promise.all([
      // Sent first: the browser can refuse this command while the page changes its document.
      this.#send('Page.resetNavigationHistory'),
      // A script of the site can't replace `location`.
      this.#send('Runtime.evaluate', { expression: `location.replace('${BLANK}')` }),
      blank,
    ]);
  }

  async #clearData(): Promise<void> {
    await Promise.all([
      ...[...this.#origins].flatMap((origin) => this.#clearOrigin(origin)),
      this.#send('Network.clearBrowserCookies'),
      this.#send('Network.clearBrowserCache'),
      this.#send('Runtime.evaluate', { expression: "window.name = ''" }),
    ]);
  }

  #clearOrigin(origin: string): Promise<unknown>[] {
    const storageId = { storageKey: `${origin}/`, isLocalStorage: false };
    return [
      // The blank page still belongs to this origin: its sessionStorage is reachable only from here.
      this.#send('DOMStorage.clear', { storageId }),
      this.#send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' }),
    ];
  }
}

function inTime(work: () => Promise<void>): Promise<void> {
  const late = () => new Error(`The browser did not respond within ${duration(CLEAR_TIMEOUT)}.`);
  return raceTimeout(CLEAR_TIMEOUT, work, late);
}
