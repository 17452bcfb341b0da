import { CdpClient, type Target } from '../wire/cdp-client.js';
import type { CdpPort } from '../wire/client.js';
import type { CleanOptions } from './browser-state.js';
import { endContexts, isRunning, RUNNING } from './end-contexts.js';
import { removeExtensions } from './installed.js';
import { clock } from '../shared/clock.js';
import { until } from '../shared/until.js';
import { COUNT_DOWNLOAD, COUNT_KEEP_ALIVE, countDownloads, countKeepAliveRequests } from './open-requests.js';

/** Time for the answer to each command, in ms. A busy browser that answers is cleaned, however long the cleaning takes. */
export const ANSWER_TIMEOUT = 5000;
/** Time after which a page that is still open is closed once more, in ms. */
const ASK_AGAIN = 100;
/** Time until the requests that a browser counts first must have ended, in ms. */
const FIRST_TIMEOUT = 1000;

const OPEN = 'A download, a sendBeacon or a fetch with keepalive of the lease is still open.';

const UNREADABLE =
  'The browser does not count its downloads and keepalive requests in a way that can be read.';

/**
 * Removes everything that a lease left in a browser, so that the next lease finds nothing of it: it disposes of the contexts
 * that were opened, replaces the pages of the browser's own context by a new blank one, and clears the data of all origins
 * and the permissions there. It uses no automation library, and nothing that a page could have replaced.
 *
 * @throws If the browser refuses a command, or if something may be left.
 */
export async function cleanBrowser(
  carrier: CdpPort,
  { isOwnContextUsed, hasHttpLogin, contexts = new Set(), ...installed }: CleanOptions,
): Promise<void> {
  // These live as long as their context, and the browser's own one as long as the browser.
  if (isOwnContextUsed && hasHttpLogin)
    throw new Error('The lease used an HTTP login, or ignored the errors of certificates.');
  const ended = new Set<string>();
  const onEnd = ({ targetId }: { readonly targetId: string }) => void ended.add(targetId);
  const cdp = new CdpClient(carrier, { 'Target.targetDestroyed': onEnd }, ANSWER_TIMEOUT);
  // What needs no earlier answer is sent at once: each wait for an answer costs a round trip to a browser that may be far away.
  if (isOwnContextUsed && carrier.hasNoEvents !== true)
    cdp.send('Target.setDiscoverTargets', { discover: true }).catch(() => {});
  const [{ browserContextIds }, blankPage, targets] = await Promise.all([
    cdp.send('Target.getBrowserContexts'),
    // A browser with a window ends when its last page is closed.
    isOwnContextUsed ? cdp.openPage() : '',
    isOwnContextUsed ? cdp.targets() : [],
    removeExtensions(cdp, installed),
  ]);
  const others = new Set([...browserContextIds, ...contexts]);
  const isOurs = (target: Target) =>
    target.targetId !== blankPage && isRunning(target) && !others.has(target.browserContextId ?? '');
  const own = new OwnContext(cdp, isOurs, carrier.hasNoEvents === true ? undefined : ended);
  await Promise.all([
    endContexts(cdp, browserContextIds, contexts),
    isOwnContextUsed && own.renew(blankPage, targets),
  ]);
}

/** The browser's own context, which nothing disposes of. */
class OwnContext {
  readonly #cdp: CdpClient;
  readonly #isOurs: (target: Target) => boolean;
  readonly #ended: ReadonlySet<string> | undefined;

  /**
   * @param isOurs Whether scripts run in a target of the context, other than its new page.
   * @param ended Receives the ids of targets that have ended. Undefined if the carrier passes no events.
   */
  constructor(cdp: CdpClient, isOurs: (target: Target) => boolean, ended: ReadonlySet<string> | undefined) {
    this.#cdp = cdp;
    this.#isOurs = isOurs;
    this.#ended = ended;
  }

  /** Ends all pages and workers but the new one, and clears the data. @param targets What runs. */
  async renew(blankPage: string, targets: readonly Target[]): Promise<void> {
    const cdp = this.#cdp;
    const [sessionId] = await Promise.all([cdp.attach(blankPage), this.#end(targets.filter(this.#isOurs))]);
    // The response to a request of a closed page can arrive while the data is cleared.
    await until('The browser still has a cookie of the lease.', async () => {
      const started = await this.#clear(sessionId);
      const [{ cookies }, running, later] = await Promise.all([
        cdp.send('Storage.getCookies'),
        this.#running(),
        countRequests(cdp),
      ]);
      if (running.length > 0) throw new Error(RUNNING);
      if (later?.started !== started) throw new Error(OPEN);
      return cookies.length === 0;
    });
  }

  async #running(): Promise<readonly Target[]> {
    return (await this.#cdp.targets()).filter(this.#isOurs);
  }

  /** Closes pages, also with an open dialog or a handler of beforeunload, and ends workers. Waits until they have ended. */
  async #end(targets: readonly Target[]): Promise<void> {
    // Nothing shows when the last request of a shared worker has ended.
    if (targets.some(({ type }) => type === 'shared_worker'))
      throw new Error('The lease used a shared worker.');
    // Other targets end with their page.
    const pages = targets.filter(({ type }) => type === 'page');
    const workers = targets.filter(({ type }) => type === 'service_worker');
    // One may have ended already.
    const close = ({ targetId }: Target) =>
      this.#cdp.send('Target.closeTarget', { targetId }).catch(() => {});
    await Promise.all([...pages, ...workers].map(close));
    const ended = this.#ended;
    // The next look at all targets shows it, and the end of a service worker, which no event reports.
    if (!ended) return;
    let asked = clock.now();
    await until(RUNNING, async () => {
      const left = pages.filter(({ targetId }) => !ended.has(targetId));
      // A page that asks before it closes does so only once.
      if (left.length > 0 && clock.now() - asked > ASK_AGAIN) {
        asked = clock.now();
        void Promise.all(left.map(close));
      }
      return left.length === 0;
    });
  }

  /**
   * Clears the data when no page or worker runs, and no request of one that was closed is open: a page can write while it is closed, and
   * a worker at any time. Resolves to the number of those requests.
   */
  async #clear(sessionId: string): Promise<number> {
    const cdp = this.#cdp;
    let started = 0;
    await until(RUNNING, async () => {
      // The browser executes these in this order.
      const [running, requests] = await Promise.all([
        this.#running(),
        countRequests(cdp),
        clearData(cdp, sessionId),
      ]);
      if (running.length > 0) {
        await this.#end(running);
        return false;
      }
      if (requests?.open === 0) {
        started = requests.started;
        return true;
      }
      if (!requests) await makeCountable(cdp);
      await until(OPEN, async () => {
        const now = await countRequests(cdp);
        if (!now) throw new Error(UNREADABLE);
        return now.open === 0;
      });
      return false;
    });
    return started;
  }
}

/** Counts the requests that can outlast their page. Resolves to undefined if the browser has counted none of a kind yet. */
async function countRequests(cdp: CdpClient): Promise<{ started: number; open: number } | undefined> {
  const send = (method: 'Browser.getHistograms', params: object) => cdp.send(method, params);
  const [keepAlive, downloads] = await Promise.all([countKeepAliveRequests(send), countDownloads(send)]);
  if (!keepAlive || !downloads) return undefined;
  return { started: keepAlive.started + downloads.started, open: keepAlive.open + downloads.open };
}

/** Makes a browser that has counted no request of a kind count one, in a context that nobody else uses. */
async function makeCountable(cdp: CdpClient): Promise<void> {
  const { browserContextId } = await cdp.send('Target.createBrowserContext', { disposeOnDetach: true });
  await cdp.send('Browser.setDownloadBehavior', { behavior: 'deny', browserContextId });
  // Without `hidden`, which a headless shell ignores, a recording of the service would show its requests, and a window open.
  const sessionId = await cdp.attach(await cdp.openPage({ browserContextId, hidden: true }));
  const run = (expression: string) =>
    cdp.send('Runtime.evaluate', { expression, awaitPromise: true, userGesture: true }, sessionId);
  await Promise.all([run(COUNT_KEEP_ALIVE), run(COUNT_DOWNLOAD)]);
  // A download whose context ends while it begins is never counted, or counts as open for ever.
  const isCounted = async () => (await countRequests(cdp))?.open === 0;
  await until(OPEN, isCounted, FIRST_TIMEOUT).catch(() => {});
  await cdp.send('Target.disposeBrowserContext', { browserContextId });
}

async function clearData(cdp: CdpClient, sessionId: string): Promise<void> {
  await Promise.all([
    cdp.send('Storage.clearDataForOrigin', { origin: '*', storageTypes: 'all' }, sessionId),
    cdp.send('Network.clearBrowserCache', {}, sessionId),
    cdp.send('Browser.resetPermissions'),
  ]);
}
