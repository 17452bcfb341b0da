import { raceTimeout } from '../shared/abort.js';
import { COUNT_KEEP_ALIVE, countKeepAliveRequests } from './open-requests.js';
import { readResult } from '../wire/message.js';

/** Time until the page must be blank, and then until the browser must have cleared its data, in ms. */
const CLEAR_TIMEOUT = 2000;

const BLANK = 'about:blank';

/**
 * Clears what a task left in its page and context, so that the next task can use both. A new page needs a new process,
 * which costs more than a small page; so a script makes the page blank in its own process.
 *
 * A task that opened a popup, registered a service worker, started a download or crashed may have left something that no
 * command reaches. So may a request that lasts longer than its page. The workspace of such a task is replaced.
 */
export class SiteDataCleaner {
  readonly #send: (method: string, params?: object) => Promise<unknown>;
  #isUnsafe = false;
  /** Number of keepalive requests of the browser when the data was cleared last. */
  #keepAliveRequests: number | undefined;
  #onBlank = () => {};

  /** @param send Sends a CDP command to the page. */
  constructor(send: (method: string, params?: object) => Promise<unknown>) {
    this.#send = send;
  }

  /** Must be called for every document of the page and of its frames. */
  readonly onNavigated = (url: string, isMain: boolean): void => {
    if (isMain && url === BLANK) this.#onBlank();
    // Other schemes than these store data in their own way.
    else if (!/^(about|data|https?):/.test(url)) this.markUnsafe();
  };

  /** Marks the workspace as not reusable: no command can undo what the task did. */
  readonly markUnsafe = (): void => {
    this.#isUnsafe = true;
  };

  /** Resolves to false, or rejects, if some data may be left. */
  async clear(): Promise<boolean> {
    if (this.#isUnsafe) return false;
    const count = () =>
      countKeepAliveRequests(async (method, params) => readResult(method, await this.#send(method, params)));
    let [before] = await raceTimeout(CLEAR_TIMEOUT, () => Promise.all([count(), this.#makeBlank()]));
    if (!before) {
      const params = { expression: COUNT_KEEP_ALIVE, awaitPromise: true };
      before = await raceTimeout(CLEAR_TIMEOUT, () => this.#send('Runtime.evaluate', params).then(count));
    }
    if (!before) return false;
    // It may have ended in the meantime.
    if (before.open > 0) before = await raceTimeout(CLEAR_TIMEOUT, count);
    if (!before) return false;
    // Requests of other pages count, too: nothing shows which page sent them.
    if (before.open > 0 && before.started !== this.#keepAliveRequests) return false;
    const [after] = await raceTimeout(CLEAR_TIMEOUT, () => Promise.all([count(), this.#clearData()]));
    if (!after) return false;
    this.#keepAliveRequests = after.started;
    // A page can send requests while it is left, and an earlier navigation may have completed first.
    return after.started === before.started && !this.#isUnsafe;
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
      this.#send('Storage.clearDataForOrigin', { origin: '*', storageTypes: 'all' }),
      this.#send('Network.clearBrowserCache'),
      // The browser also has the name that the previous document set while it was left, and an equal name has no effect.
      this.#send('Runtime.evaluate', { expression: "window.name = 'x'; window.name = ''" }),
    ]);
  }
}
