import type { CDPSession, Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { withPooledBrowser } from '../../src/playwright.js';
import { useLocalPool } from '../support/local.js';

const used = useLocalPool();

/** Calls `fn` in a lease of the only browser of the pool. */
async function leased<Value>(fn: (page: Page, cdp: CDPSession) => Promise<Value>): Promise<Value> {
  const { value } = await withPooledBrowser(used.pool, async ({ page, context }) =>
    fn(page, await context.newCDPSession(page)),
  );
  return value;
}

const idOf = async (_page: Page, cdp: CDPSession) =>
  (await cdp.send('Target.getTargetInfo')).targetInfo.targetId;

/** As many connects of Playwright would. */
const leaveWorlds = (count: number) =>
  leased(async (_page, cdp) => {
    const { id: frameId } = (await cdp.send('Page.getFrameTree')).frameTree.frame;
    for (let index = 0; index < count; index++)
      await cdp.send('Page.createIsolatedWorld', { frameId, worldName: `world ${index}` });
  });

it('keeps a page with many frames', async () => {
  const first = await leased(async (page, cdp) => {
    await page.setContent('<iframe></iframe>'.repeat(60));
    return idOf(page, cdp);
  });
  expect([await leased(idOf), await leased(idOf)]).toEqual([first, first]);
});

it('replaces the page that stays when Playwright has connected to it often, and only then', async () => {
  const first = await leased(idOf);
  await leaveWorlds(10);
  expect(await leased(idOf)).toBe(first);
  await leaveWorlds(60);
  expect(await leased(idOf)).toBe(first);
  // The lease before this one has seen the worlds.
  const next = await leased(idOf);
  expect(next).not.toBe(first);
  expect(await leased(idOf)).toBe(next);
  expect(used.local.stats()).toMatchObject({ leased: 0 });
});
