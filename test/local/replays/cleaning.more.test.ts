import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { BrowserPool } from '../../../src/index.js';
import { startLocalPool } from '../../../src/local.js';
import { withPooledBrowser } from '../../../src/playwright.js';
import { titled } from '../../support/local.js';
import { useWholeBrowser } from '../../support/whole-browser.js';
import { savedFacts } from './support.js';

useWholeBrowser();

it('a recording of a whole lease shows no request of the cleaning of a new browser', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'recordings-'));
  await using local = await startLocalPool({ pools: [{ recordAll: true }], recording: { folder } });
  await using pool = new BrowserPool('default', { baseUrl: local.baseUrl, token: local.token });
  const { replays, released } = await withPooledBrowser(pool, ({ page }) => page.goto(titled('mine')), {
    replaysTimeout: 60_000,
  });
  expect(released).toBe('reused');
  const page = fileURLToPath(replays[0]!.replay_view_url!);
  const kinds = () => savedFacts(page).timeline.map(({ kind }) => kind);
  await expect.poll(kinds).toContain('recording-ended');
  expect(kinds()).toContain('navigation');
  // The address of that request.
  expect(JSON.stringify(savedFacts(page).timeline)).not.toContain('192.0.2.1');
  rmSync(folder, { recursive: true });
});
