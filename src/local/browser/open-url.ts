import { raceAbort, raceTimeout } from '../../shared/abort.js';
import { CdpConnection, type DevToolsAddress } from './cdp-connection.js';

/** A slow page must not hold up the lease: it goes on loading. */
const LONGEST_WAIT = 3_000;

/**
 * Opens a URL in the browser's first page. Best effort (interface: acquire, start_url): never rejects, and waits until
 * the page has loaded, has failed, or is called off, for three seconds at most.
 */
export async function openUrl(browser: DevToolsAddress, url: string, signal?: AbortSignal): Promise<void> {
  const page = new FirstPage();
  const opening = page.open(browser);
  try {
    const loaded = opening.then((connection) => page.load(connection, url));
    await raceTimeout(
      LONGEST_WAIT,
      () => raceAbort(loaded, signal),
      () => new Error('The page is slow.'),
    );
  } catch {
    // A failed navigation does not fail the lease.
  } finally {
    void opening.then((connection) => connection.close()).catch(() => {});
  }
}

class FirstPage {
  #onLoad!: () => void;
  readonly #loaded = new Promise<void>((resolve) => (this.#onLoad = resolve));
  #isNavigated = false;

  open(browser: DevToolsAddress): Promise<CdpConnection> {
    return CdpConnection.open(browser, ({ method }) => {
      if (method === 'Page.frameNavigated') this.#isNavigated = true;
      if (method === 'Page.loadEventFired' && this.#isNavigated) this.#onLoad();
    });
  }

  /** A client that connects while a page changes its process may see no page at all: hence the wait for its load. */
  async load(connection: CdpConnection, url: string): Promise<void> {
    const targetId = (await findPage(connection)) ?? (await createPage(connection));
    const { sessionId } = await connection.ask('Target.attachToTarget', { targetId, flatten: true });
    await connection.ask('Page.enable', {}, String(sessionId));
    const { errorText, loaderId } = await connection.ask('Page.navigate', { url }, String(sessionId));
    // Without a loader the document stayed, as it does for a fragment: there is no load to wait for.
    if (errorText === undefined && loaderId !== undefined) await this.#loaded;
  }
}

async function findPage(connection: CdpConnection): Promise<unknown> {
  const { targetInfos } = await connection.ask('Target.getTargets');
  return (targetInfos as { type: string; targetId: string }[]).find(({ type }) => type === 'page')?.targetId;
}

async function createPage(connection: CdpConnection): Promise<unknown> {
  return (await connection.ask('Target.createTarget', { url: 'about:blank' }))['targetId'];
}
