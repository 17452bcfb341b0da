import { CdpClient, type CdpCarrier } from './cdp-client.js';

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
  if (isOwnContextUsed) await expectClean(cdp);
}

async function renewOwnContext(cdp: CdpClient, others: ReadonlySet<string>): Promise<void> {
  const old = (await targetsOf(cdp)).filter(({ browserContextId = '' }) => !others.has(browserContextId));
  // A browser with a window ends when its last page is closed.
  const { targetId } = await cdp.send<{ targetId: string }>('Target.createTarget', { url: 'about:blank' });
  const pages = old.filter(({ type }) => type === 'page');
  // Closes also a page with an open dialog, or with a handler of beforeunload.
  await Promise.all(pages.map((page) => cdp.send('Target.closeTarget', { targetId: page.targetId })));
  const attached = { targetId, flatten: true };
  const { sessionId } = await cdp.send<{ sessionId: string }>('Target.attachToTarget', attached);
  await Promise.all([
    cdp.send('Storage.clearDataForOrigin', { origin: '*', storageTypes: 'all' }, sessionId),
    cdp.send('Network.clearBrowserCookies', {}, sessionId),
    cdp.send('Network.clearBrowserCache', {}, sessionId),
    cdp.send('Browser.resetPermissions'),
  ]);
}

async function expectClean(cdp: CdpClient): Promise<void> {
  const targets = await targetsOf(cdp);
  const isLeft = ({ type }: TargetInfo) => /worker/.test(type);
  if (targets.filter(({ type }) => type === 'page').length > 1 || targets.some(isLeft))
    throw new Error('A page or a worker of the lease is still running.');
}

async function targetsOf(cdp: CdpClient): Promise<TargetInfo[]> {
  return (await cdp.send<{ targetInfos: TargetInfo[] }>('Target.getTargets')).targetInfos;
}
