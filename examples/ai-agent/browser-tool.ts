import { tool } from 'ai';
import type { Page } from 'playwright-core';
import type { PooledBrowser } from 'pooled-browser';
import { z } from 'zod';

/** Maximum length of a page's text for the model, in characters. */
const LONGEST_TEXT = 4000;

/** A tool for the AI SDK: opens a page in a leased browser, and reads it. */
export function readPageTool(lease: PooledBrowser<{ page: Page }>) {
  return tool({
    description: 'Opens a web page and returns its title and its text.',
    inputSchema: z.object({ url: z.url() }),
    // `use` replaces a connection that dropped while the model was thinking.
    execute: ({ url }) =>
      lease.use(async ({ page }) => {
        await page.goto(url);
        return { title: await page.title(), text: (await page.innerText('body')).slice(0, LONGEST_TEXT) };
      }),
  });
}
