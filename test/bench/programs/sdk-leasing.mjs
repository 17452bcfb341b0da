// Leases a browser with the public service's SDK, and then ends in the way that its first argument names. Used by
// ../compare.ts.
import Kernel from '@onkernel/sdk';
import { chromium } from 'playwright-core';

const [, , ending] = process.argv;
const { BROWSER_POOL_BASE_URL: baseURL, BROWSER_POOL_ACCESS_TOKEN: apiKey } = process.env;
const client = new Kernel({ apiKey, baseURL });
const session = await client.browserPools.acquire('test', { acquire_timeout_seconds: 10 });
try {
  const browser = await chromium.connectOverCDP(session.cdp_ws_url);
  process.stdout.write('leased\n');
  if (ending === 'exit') process.exit(7);
  await new Promise(() => {});
  await browser.close();
} finally {
  await client.browserPools.release('test', { session_id: session.session_id });
}
