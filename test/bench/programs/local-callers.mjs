// Leases browsers of this machine for many callers at once, each with a page that holds memory. In the control group GROUP, if there is one.
import { writeFileSync } from 'node:fs';
import { BrowserPool } from 'pooled-browser';
import { withPooledBrowser } from 'pooled-browser/playwright';

const { GROUP, SIZE, CALLERS, HELD = '100' } = process.env;
if (GROUP) writeFileSync(GROUP, String(process.pid));
const pool = new BrowserPool('callers', { baseUrl: 'local', local: { size: Number(SIZE) } });
const calls = Array.from({ length: Number(CALLERS) }, () =>
  withPooledBrowser(
    pool,
    async ({ page }) => {
      await page.evaluate(
        (bytes) => Object.assign(globalThis, { held: new Uint8Array(bytes).fill(1) }),
        Number(HELD) * 2 ** 20,
      );
      await new Promise((resolve) => setTimeout(resolve, 500));
      return await page.evaluate('held.length');
    },
    { replays: 'off' },
  ),
);
const ended = await Promise.allSettled(calls);
await pool.close();
const failed = ended.filter(({ status }) => status === 'rejected');
console.log(`${ended.length - failed.length} succeeded, ${failed.length} failed`);
for (const { reason } of failed) console.error(reason);
