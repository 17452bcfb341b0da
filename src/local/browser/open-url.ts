import { raceAbort, raceTimeout } from '../../shared/abort.js';
import { CdpSession, type CdpClient } from '../../wire/cdp-client.js';
import { sourceOver } from '../../wire/cdp-source.js';
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
  const opening = sourceOver(browser.pipe)({
    'Page.frameNavigated': () => (isNavigated = true),
    'Page.loadEventFired': () => isNavigated && onLoad(),
  });
  let onSent!: () => void;
  const sent = new Promise<void>((resolve) => (onSent = resolve));
  // A client that connects while a page changes its process may see no page: hence the wait for the load event.
  const work = opening.then(async (cdp) => (await navigate(cdp, url, onSent)) && (await loaded));
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
async function navigate(cdp: CdpClient, url: string, onSent: () => void): Promise<boolean> {
  const first = (await cdp.targets()).find(({ type }) => type === 'page');
  const page = new CdpSession(cdp, await cdp.attach(first?.targetId ?? (await cdp.openPage())));
  const answers = Promise.all([page.ask('Page.enable'), page.ask('Page.navigate', { url })]);
  onSent();
  const [, { errorText, loaderId }] = await answers;
  return errorText === undefined && loaderId !== undefined;
}
