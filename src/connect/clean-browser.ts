import { clock, delay } from '../shared/clock.js';
import { CdpClient, type CdpCarrier, type Target } from './cdp-client.js';
import { countDownloads, countKeepAliveRequests } from './lasting-requests.js';

/** Time until everything that a lease left must have ended, in ms. */
const END_TIMEOUT = 2500;
/** Time between two checks, in ms. */
const CHECK_INTERVAL = 5;

const RUNNING = 'A page or a worker of the lease is still running.';
const OPEN = 'A download, a sendBeacon or a fetch with keepalive of the lease is still open.';

/**
 * Removes everything that a lease left in a browser, so that the next lease finds nothing of it: it disposes of the contexts
 * that were opened, replaces the pages of the browser's own context by a new blank one, and clears the data of all origins
 * and the permissions there. It uses no automation library, and nothing that a page could have replaced.
 *
 * @param isOwnContextUsed False if the lease used only contexts of its own: the browser's own context stays untouched.
 * @throws If the browser refuses a command, or if something may be left.
 */
export async function cleanBrowser(
  carrier: CdpCarrier,
  { isOwnContextUsed }: { isOwnContextUsed: boolean },
): Promise<void> {
  const cdp = new CdpClient(carrier);
  const { browserContextIds } = await cdp.send<{ browserContextIds: string[] }>('Target.getBrowserContexts');
  const dispose = (browserContextId: string) =>
    cdp.send('Target.disposeBrowserContext', { browserContextId });
  await Promise.all([
    ...browserContextIds.map(dispose),
    isOwnContextUsed && renewOwnContext(cdp, new Set(browserContextIds)),
  ]);
}

async function renewOwnContext(cdp: CdpClient, others: ReadonlySet<string>): Promise<void> {
  // A browser with a window ends when its last page is closed.
  const targetId = await cdp.openPage();
  const runningTargets = async () => {
    const targets = await cdp.targets();
    return targets.filter(
      (target) =>
        target.targetId !== targetId &&
        /^(page|iframe)$|worker/.test(target.type) &&
        !others.has(target.browserContextId ?? ''),
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
    return (await cdp.send<{ cookies: unknown[] }>('Storage.getCookies')).cookies.length === 0;
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
  const send = (method: string, params: object) => cdp.send(method, params);
  let started = 0;
  await until(OPEN, async () => {
    const counts = await Promise.all([countKeepAliveRequests(send), countDownloads(send)]);
    started = counts[0].started + counts[1].started;
    return counts[0].open + counts[1].open === 0;
  });
  return started;
}

async function clearData(cdp: CdpClient, sessionId: string): Promise<void> {
  await Promise.all([
    cdp.send('Storage.clearDataForOrigin', { origin: '*', storageTypes: 'all' }, sessionId),
    cdp.send('Network.clearBrowserCache', {}, sessionId),
    cdp.send('Browser.resetPermissions'),
  ]);
}

/** Repeats a check until it succeeds. */
async function until(failure: string, check: () => Promise<boolean>): Promise<void> {
  const began = clock.now();
  while (!(await check())) {
    if (clock.now() - began > END_TIMEOUT) throw new Error(failure);
    await delay(CHECK_INTERVAL);
  }
}
