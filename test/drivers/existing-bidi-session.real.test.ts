import { expect, it } from 'vitest';
import { withPooledBrowser } from '../../src/puppeteer.js';
import { titled, useLocalPool } from '../support/local.js';

const used = useLocalPool({ quirks: { bidiSession: 'existing' } });

it('connects repeatedly over BiDi to a browser that has a session, and never ends the session', async () => {
  const { pool, local } = used;
  for (const title of ['one', 'two']) {
    const { value, released } = await withPooledBrowser(
      pool,
      async ({ page, browser }) => {
        await page.goto(titled(title));
        return [await page.title(), await browser.version()];
      },
      { protocol: 'bidi' },
    );
    expect(value[0]).toBe(title);
    expect(value[1]).toMatch(/^chrome\/\d+/i);
    expect(released).toBe('reused');
  }
  expect(local.stats().destroyed).toBe(0);
});
