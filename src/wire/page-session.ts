import { CdpClient } from './cdp-client.js';
import type { Client } from './client.js';
import { until } from '../shared/until.js';

/**
 * Opens a URL in the first page of a browser, over CDP.
 *
 * @throws If it can't be loaded. The page is blank then: the browser's error page would interrupt the next navigation.
 */
export async function openInFirstPage(
  { wire }: { readonly wire: Pick<Client['wire'], 'openOwn'> },
  url: string,
): Promise<void> {
  const cdp = await wire.openOwn();
  try {
    const page = (await cdp.targets()).find(({ type }) => type === 'page');
    const sessionId = await cdp.attach(page?.targetId ?? (await cdp.openPage()));
    const { errorText } = await cdp.send('Page.navigate', { url }, sessionId);
    if (errorText === undefined) return;
    await until(NOT_BLANK, () => makeBlank(cdp, sessionId));
    throw new Error(`The page could not be loaded: ${errorText}.`);
  } finally {
    cdp.close();
  }
}

const NOT_BLANK = 'The page does not become blank.';

async function makeBlank(cdp: CdpClient, sessionId: string): Promise<boolean> {
  await cdp.send('Page.navigate', { url: 'about:blank' }, sessionId);
  const { frameTree } = await cdp.send('Page.getFrameTree', {}, sessionId);
  return frameTree.frame.url === 'about:blank';
}

/** Opens a session of a page for a client, who has asked for it: the layers see the commands. @param targetId Default: any page. */
export async function openPageSession(client: Client, targetId: string | undefined): Promise<Client> {
  const cdp = new CdpClient(client);
  const anyPage = async () => {
    const page = (await cdp.targets()).find(({ type }) => type === 'page');
    return page?.targetId ?? cdp.openPage();
  };
  return client.wire.clientOf(await cdp.attach(targetId ?? (await anyPage())), client.kind);
}
