import { CdpClient, type Target } from '../wire/cdp-client.js';
import type { CdpPort } from '../wire/client.js';
import { endContexts, isRunning, RUNNING } from './end-contexts.js';
import { removeExtensions, type Installed } from './installed.js';
import { until } from '../shared/until.js';
import {
  COUNT_DOWNLOAD,
  COUNT_KEEP_ALIVE,
  countDownloads,
  countKeepAliveRequests,
} from './lasting-requests.js';

/** Time for the answer to each command, in ms. A busy browser that answers is cleaned, however long the cleaning takes. */
export const ANSWER_TIMEOUT = 5000;
/** Time until the requests that a browser counts first must have ended, in ms. */
const FIRST_TIMEOUT = 1000;

const OPEN = 'A download, a sendBeacon or a fetch with keepalive of the lease is still open.';

const UNREADABLE =
  'The browser does not count its downloads and keepalive requests in a way that can be read.';

/** What a lease has done in a browser. */
export interface HowToClean extends Installed {
  /** False if the lease used only contexts of its own: the browser's own context stays untouched. */
  readonly isOwnContextUsed: boolean;
  /** Whether a client has used an HTTP login or ignored errors of certificates, or may have: no command removes what these leave. */
  readonly hasHttpLogin: boolean;
  /** All contexts that the lease made. The pages of those that it has closed can still run. */
  readonly contexts?: ReadonlySet<string> | undefined;
}

/**
 * Removes everything that a lease left in a browser, so that the next lease finds nothing of it: it disposes of the contexts
 * that were opened, replaces the pages of the browser's own context by a new blank one, and clears the data of all origins
 * and the permissions there. It uses no automation library, and nothing that a page could have replaced.
 *
 * @throws If the browser refuses a command, or if something may be left.
 */
export async function cleanBrowser(
  carrier: CdpPort,
  { isOwnContextUsed, hasHttpLogin, contexts = new Set(), ...installed }: HowToClean,
): Promise<void> {
  // These live as long as their context, and the browser's own one as long as the browser.
  if (isOwnContextUsed && hasHttpLogin)
    throw new Error('The lease used an HTTP login, or ignored the errors of certificates.');
  const cdp = new CdpClient(carrier, {}, ANSWER_TIMEOUT);
  const [{ browserContextIds }] = await Promise.all([
    cdp.send('Target.getBrowserContexts'),
    removeExtensions(cdp, installed),
  ]);
  await Promise.all([
    endContexts(cdp, browserContextIds, contexts),
    isOwnContextUsed && renewOwnContext(cdp, new Set([...browserContextIds, ...contexts])),
  ]);
}

async function renewOwnContext(cdp: CdpClient, others: ReadonlySet<string>): Promise<void> {
  // A browser with a window ends when its last page is closed.
  const targetId = await cdp.openPage();
  const runningTargets = async () => {
    const targets = await cdp.targets();
    return targets.filter(
      (target) =>
        target.targetId !== targetId && isRunning(target) && !others.has(target.browserContextId ?? ''),
    );
  };
  // Before the data is cleared: a page can write while it is closed, and a worker at any time.
  await until(RUNNING, async () => {
    const running = await runningTargets();
    await Promise.all(running.map((target) => end(cdp, target)));
    return running.length === 0;
  });
  const [sessionId, started] = await Promise.all([cdp.attach(targetId), closedRequests(cdp)]);
  // The response to a request of a closed page can arrive while the data is cleared.
  await until('The browser still has a cookie of the lease.', async () => {
    await clearData(cdp, sessionId);
    return (await cdp.send('Storage.getCookies')).cookies.length === 0;
  });
  const [running, startedLater] = await Promise.all([runningTargets(), closedRequests(cdp)]);
  if (running.length > 0) throw new Error(RUNNING);
  if (startedLater !== started) throw new Error(OPEN);
}

/** Closes a page, also with an open dialog or a handler of beforeunload, or ends a worker. */
async function end(cdp: CdpClient, { targetId, type }: Target): Promise<void> {
  // Nothing shows when the last request of a shared worker has ended.
  if (type === 'shared_worker') throw new Error('The lease used a shared worker.');
  // Other targets end with their page. This one may have ended already.
  if (type === 'page' || type === 'service_worker')
    await cdp.send('Target.closeTarget', { targetId }).catch(() => {});
}

/** Waits until no request of a page that was closed is open. Resolves to the number of those that were started. */
async function closedRequests(cdp: CdpClient): Promise<number> {
  const count = () =>
    Promise.all(
      [countKeepAliveRequests, countDownloads].map((one) =>
        one((method, params) => cdp.send(method, params)),
      ),
    );
  const isCounted = async () => (await count()).every((one) => one?.open === 0);
  if ((await count()).includes(undefined)) await makeCountable(cdp, isCounted);
  let started = 0;
  await until(OPEN, async () => {
    let open = 0;
    started = 0;
    for (const one of await count()) {
      if (!one) throw new Error(UNREADABLE);
      started += one.started;
      open += one.open;
    }
    return open === 0;
  });
  return started;
}

/** Makes a browser that has counted no request of a kind count one, in a context that nobody else uses. */
async function makeCountable(cdp: CdpClient, isCounted: () => Promise<boolean>): Promise<void> {
  const { browserContextId } = await cdp.send('Target.createBrowserContext', { disposeOnDetach: true });
  await cdp.send('Browser.setDownloadBehavior', { behavior: 'deny', browserContextId });
  // Without `hidden`, which a headless shell ignores, a recording of the service would show its requests, and a window open.
  const sessionId = await cdp.attach(await cdp.openPage({ browserContextId, hidden: true }));
  const run = (expression: string) =>
    cdp.send('Runtime.evaluate', { expression, awaitPromise: true, userGesture: true }, sessionId);
  await Promise.all([run(COUNT_KEEP_ALIVE), run(COUNT_DOWNLOAD)]);
  // A download whose context ends while it begins is never counted, or counts as open for ever.
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
