import { raceAbort, raceTimeout } from '../../shared/abort.js';
import { CdpConnection } from '../../net/cdp-connection.js';
import type { Chromium } from './chromium.js';
import type { LocalBrowser } from './local-browser.js';

/** A slow page must not delay the lease: the page continues to load. */
const LOAD_TIMEOUT = 3_000;

/**
 * Opens a URL in the browser's first page. Waits at most 3 s for the page to load, and never rejects: a failed navigation
 * does not fail the lease.
 */
export async function openUrl(
  { chromium, sessions }: LocalBrowser,
  url: string,
  signal?: AbortSignal,
): Promise<void> {
  const open = chromium
    ? openOverCdp(chromium, url, signal)
    : raceTimeout(LOAD_TIMEOUT, () => raceAbort(sessions!.openUrl(url), signal));
  // The page shows the failure.
  await open.catch(() => {});
}

async function openOverCdp(browser: Chromium, url: string, signal?: AbortSignal): Promise<void> {
  let onLoad!: () => void;
  const loaded = new Promise<void>((resolve) => (onLoad = resolve));
  let isNavigated = false;
  const opening = CdpConnection.open(browser.pipe, ({ method }) => {
    if (method === 'Page.frameNavigated') isNavigated = true;
    if (method === 'Page.loadEventFired' && isNavigated) onLoad();
  });
  let onSent!: () => void;
  const sent = new Promise<void>((resolve) => (onSent = resolve));
  // A client that connects while a page changes its process may see no page: hence the wait for the load event.
  const work = opening.then(
    async (connection) => (await navigate(connection, url, onSent)) && (await loaded),
  );
  try {
    await raceTimeout(
      LOAD_TIMEOUT,
      () => raceAbort(work, signal),
      () => new Error('The page is slow.'),
    );
  } finally {
    // A busy browser opens the URL later than the timeout. An aborted lease opens none.
    const end = signal?.aborted ? Promise.resolve() : Promise.race([sent, work.catch(() => {})]);
    void end.then(async () => (await opening).close()).catch(() => {});
  }
}

/**
 * @param onSent Called when the browser has the command.
 * @returns Whether a load event follows: a URL that differs only in its fragment has none.
 */
async function navigate(connection: CdpConnection, url: string, onSent: () => void): Promise<boolean> {
  const targetId = (await findPage(connection)) ?? (await createPage(connection));
  const page = await connection.attach(targetId);
  const answers = Promise.all([page.ask('Page.enable'), page.ask('Page.navigate', { url })]);
  onSent();
  const [, { errorText, loaderId }] = await answers;
  return errorText === undefined && loaderId !== undefined;
}

async function findPage(connection: CdpConnection): Promise<unknown> {
  const { targetInfos } = await connection.ask('Target.getTargets');
  return (targetInfos as { type: string; targetId: string }[]).find(({ type }) => type === 'page')?.targetId;
}

async function createPage(connection: CdpConnection): Promise<unknown> {
  return (await connection.ask('Target.createTarget', { url: 'about:blank' }))['targetId'];
}
