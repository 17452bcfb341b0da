import { CdpFault, type CdpSession } from '../net/cdp-connection.js';
import { withRetries } from '../shared/retry.js';

/**
 * Starts the screencast of a page, with retries for 10 s: a page refuses for some milliseconds while a navigation changes
 * its process.
 */
export async function startScreencast(page: Pick<CdpSession, 'ask'>, format: object): Promise<void> {
  await withRetries(
    async () => void (await page.ask('Page.startScreencast', format)),
    (error) => error instanceof CdpFault && /not attached to an active page/i.test(error.message),
    { retries: 200, minTimeout: 50, maxTimeout: 50 },
  );
}
