import { clock } from '../shared/clock.js';
import type { CdpClient, Target } from '../wire/cdp-client.js';
import { until } from '../shared/until.js';
import type { Layer } from '../wire/layer.js';

/** Time for the pages of a context to close by themselves, in ms: a page may still send something in `unload`. */
const UNLOAD_TIMEOUT = 1000;
/** Time until all of them must have ended, in ms. */
const END_TIMEOUT = 5000;

export const RUNNING = 'A page or a worker of the lease is still running.';

/**
 * Disposes of contexts, and resolves when none of their pages and workers runs any longer. Chromium closes the pages of a context one
 * after the other, and a page that blocks in `unload` keeps the others running: what stays is crashed.
 *
 * @param open The contexts to dispose of.
 * @param closing Contexts that somebody else may have disposed of: their pages can still be closing.
 * @throws If a context or a page stays.
 */
export async function endContexts(
  cdp: CdpClient,
  open: readonly string[],
  closing: ReadonlySet<string> = new Set(),
): Promise<void> {
  if (open.length + closing.size === 0) return;
  const isOurs = ({ browserContextId = '' }: Target) =>
    closing.has(browserContextId) || open.includes(browserContextId);
  const dispose = (browserContextId: string) =>
    cdp.send('Target.disposeBrowserContext', { browserContextId });
  const disposing = Promise.allSettled(open.map(dispose));
  const began = clock.now();
  const crashed = new Set<string>();
  const haveEnded = async () => {
    const running = (await cdp.targets()).filter((target) => isRunning(target) && isOurs(target));
    const isLate = clock.now() - began > UNLOAD_TIMEOUT;
    for (const target of isLate ? running : []) {
      if (crashed.has(target.targetId)) continue;
      crashed.add(target.targetId);
      void crash(cdp, target).catch(() => {});
    }
    return running.length === 0;
  };
  await until(RUNNING, haveEnded, END_TIMEOUT);
  const failed = (await disposing).find((result) => result.status === 'rejected');
  if (!failed) return;
  // Somebody else may have been faster.
  const { browserContextIds } = await cdp.send('Target.getBrowserContexts');
  if (browserContextIds.some((id) => open.includes(id))) throw failed.reason;
}

/** Whether scripts of the target can run. */
export function isRunning({ type }: Target): boolean {
  return /^(page|iframe)$|worker/.test(type);
}

/** Ends the process of a page, also of one that does not respond. A worker ends with its context. */
async function crash(cdp: CdpClient, { type, targetId }: Target): Promise<void> {
  if (type === 'page' || type === 'iframe') await cdp.send('Page.crash', {}, await cdp.attach(targetId));
}

/** Notes the contexts of the lease. Their names can be equal: the user contexts of WebDriver BiDi are the contexts of CDP. */
export function noteContexts(contexts: Set<string>): Layer {
  return {
    name: 'contexts',
    commands: {
      'Target.createBrowserContext': async (_command, next) => {
        const answer = await next();
        contexts.add(answer.result.browserContextId);
        return answer;
      },
      'browser.createUserContext': async (_command, next) => {
        const answer = await next();
        contexts.add(answer.result.userContext);
        return answer;
      },
    },
  };
}
