import { withRetries } from '../../shared/lazy.js';
import { CdpFault } from './cdp-connection.js';

/** Milliseconds between two tries, and how many follow the first: for 10 seconds. */
const PAUSE = 50;
const RETRIES = 200;

/**
 * Begins the screencast of a page. A page that is just changing its process, in a navigation, refuses for some
 * milliseconds, and would then never be shown.
 *
 * @param ask Sends a command to the page.
 */
export async function startScreencast(
  ask: (method: string, params: object) => Promise<unknown>,
  format: object,
): Promise<void> {
  await withRetries(async () => void (await ask('Page.startScreencast', format)), {
    retries: RETRIES,
    minTimeout: PAUSE,
    factor: 1,
    shouldRetry: ({ error }) =>
      error instanceof CdpFault && /not attached to an active page/i.test(error.message),
  });
}
