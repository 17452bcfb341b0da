import { clock, delay } from '../shared/clock.js';
import { CdpClient, type CdpCarrier } from './cdp-client.js';

/** Milliseconds for pages and workers to end, and between two looks. */
const ENDING = 4000;
const LOOK = 10;

interface TargetInfo {
  readonly targetId: string;
  readonly type: string;
  readonly browserContextId?: string;
}

/**
 * Removes everything that a lease left in a browser, so that the next lease finds nothing of it: it disposes of the contexts
 * that were opened, replaces the pages of the browser's own context by a new blank one, and clears the data of all origins
 * and the permissions there. It uses no automation library, and nothing that a page could have replaced.
 *
 * @param isOwnContextUsed False if the lease used only contexts of its own: the browser's own context stays untouched.
 * @throws If the browser refuses a command, or if something is left.
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
  const old = (await targetsOf(cdp)).filter(({ browserContextId = '' }) => !others.has(browserContextId));
  // A browser with a window ends when its last page is closed.
  const { targetId } = await cdp.send<{ targetId: string }>('Target.createTarget', { url: 'about:blank' });
  const pages = old.filter(({ type }) => type === 'page');
  const began = clock.now();
  const close = (target: TargetInfo) => cdp.send('Target.closeTarget', { targetId: target.targetId });
  // Closes also a page with an open dialog, or with a handler of beforeunload.
  await Promise.all(pages.map(close));
  // While it closes, a page can still store something.
  await waitForEnd(cdp, began, (target) => pages.some((page) => page.targetId === target.targetId));
  // A service worker to which a library is attached does not end by itself. Other workers end with their pages.
  const workers = (await targetsOf(cdp)).filter(({ type }) => type === 'service_worker');
  await Promise.all(workers.map((worker) => close(worker).catch(() => {})));
  const attached = { targetId, flatten: true };
  const { sessionId } = await cdp.send<{ sessionId: string }>('Target.attachToTarget', attached);
  await Promise.all([
    cdp.send('Storage.clearDataForOrigin', { origin: '*', storageTypes: 'all' }, sessionId),
    cdp.send('Network.clearBrowserCookies', {}, sessionId),
    cdp.send('Network.clearBrowserCache', {}, sessionId),
    cdp.send('Browser.resetPermissions'),
  ]);
  const isOther = (target: TargetInfo) => target.type === 'page' && target.targetId !== targetId;
  await waitForEnd(cdp, began, (target) => isOther(target) || /worker/.test(target.type));
}

/** The commands that close pages and stop workers do not wait until these have ended. */
async function waitForEnd(
  cdp: CdpClient,
  began: number,
  isLeft: (target: TargetInfo) => boolean,
): Promise<void> {
  while ((await targetsOf(cdp)).some(isLeft)) {
    if (clock.now() - began > ENDING) throw new Error('A page or a worker of the lease is still running.');
    await delay(LOOK);
  }
}

async function targetsOf(cdp: CdpClient): Promise<TargetInfo[]> {
  return (await cdp.send<{ targetInfos: TargetInfo[] }>('Target.getTargets')).targetInfos;
}
