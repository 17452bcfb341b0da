import { raceTimeout } from '../shared/abort.js';
import { clock, delay, startTimer } from '../shared/clock.js';
import { CdpClient, type Target } from '../wire/cdp-client.js';
import type { OpenCdp } from '../wire/forms.js';
import { createAbort } from '../shared/globals.js';

/** Milliseconds after which a connect may be waiting for an unresponsive page. */
const SLOW_CONNECT = 4000;
/** Time for a page to answer, in ms. */
const ANSWER_TIMEOUT = 2000;
/** Time between two looks at a page without a document, in ms. */
const POLL = 200;
/** The URLs of a page before its first document. */
const NO_DOCUMENT: readonly string[] = [':', ''];

/**
 * Closes the pages that do not answer if connecting is slow. A page with a blocked script or an open dialog, or whose first
 * document never comes, can prevent an automation library from connecting, and the browser would be lost. A fast connect
 * causes no request.
 *
 * @param onClosed Called with the URLs of the closed pages.
 */
export function closeUnresponsivePages(
  open: OpenCdp,
  connectTimeout: number,
  onClosed: (urls: string[]) => void,
): { wereClosed(): boolean; stop(): void } {
  const stopped = createAbort();
  let wereClosed = false;
  const run = async () => {
    const socket = await open(stopped.signal);
    stopped.signal.addEventListener('abort', () => socket.cut('closed-by-us'), { once: true });
    try {
      const cdp = new CdpClient(socket);
      const pages = await findUnresponsive(cdp);
      stopped.signal.throwIfAborted();
      if (pages.length === 0) return;
      wereClosed = true;
      const close = ({ targetId, url }: Target) =>
        cdp.send('Target.closeTarget', { targetId }).then(() => url);
      const closed = await Promise.allSettled(pages.map(close));
      // A page may have closed itself meanwhile.
      const urls = closed.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
      if (urls.length > 0) onClosed(urls);
    } finally {
      socket.cut('closed-by-us');
    }
  };
  // After a failure here, the timeout of the connect is reported.
  const timer = startTimer(Math.min(SLOW_CONNECT, connectTimeout / 3), () => void run().catch(() => {}));
  return {
    wereClosed: () => wereClosed,
    stop: () => {
      clock.clearTimeout(timer);
      // Without a reason, Node would create an error with a stack trace.
      stopped.abort('stopped');
    },
  };
}

async function findUnresponsive(cdp: CdpClient): Promise<Target[]> {
  const pages = (await cdp.targets()).filter(({ type }) => type === 'page');
  const answers = await Promise.all(pages.map(({ targetId }) => answersInTime(cdp, targetId)));
  return pages.filter((_page, index) => !answers[index]);
}

async function answersInTime(cdp: CdpClient, targetId: string): Promise<boolean> {
  const late = new Error('The page does not respond.');
  const answer = async () => {
    const session = await cdp.attach(targetId);
    await cdp.send('Runtime.evaluate', { expression: '0' }, session);
    const urlOf = async () => (await cdp.send('Page.getFrameTree', {}, session)).frameTree.frame.url;
    // Ends with the socket.
    while (NO_DOCUMENT.includes(await urlOf())) await delay(POLL);
  };
  // A page that was closed meanwhile, or that refuses the command, does not block the connect.
  return raceTimeout(ANSWER_TIMEOUT, answer, () => late).then(
    () => true,
    (error: unknown) => error !== late,
  );
}
