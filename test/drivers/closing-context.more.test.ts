import { expect, it } from 'vitest';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { useLocalPool } from '../support/local.js';
import { PollingPages, type AnyPage } from '../support/polling-pages.js';
import { useWholeBrowser } from '../support/whole-browser.js';

useWholeBrowser();
const used = useLocalPool();

interface ClosableContext {
  close(): Promise<void>;
}

it.each([
  ['Playwright', playwright],
  ['Puppeteer', puppeteer],
])(
  '%s: a context that is still closing at the end of the lease has ended before the release',
  async (_name, library) => {
    const { withPooledBrowser } = library as typeof puppeteer;
    await using pages = await PollingPages.open(1500);
    const use = async ({ page, context }: { page: AnyPage; context: ClosableContext }) => {
      await pages.show(page);
      context.close().catch(() => {});
    };
    const { released } = await withPooledBrowser(used.pool, use as never, { context: 'new' });
    const at = Date.now();
    expect({ released, ranFor: (await pages.watch(at)).ranFor }).toEqual({ released: 'reused', ranFor: 0 });
  },
);
