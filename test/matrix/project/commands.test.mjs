// Further commands, with the runtime that runs this file.
import assert from 'node:assert/strict';
import { after, it } from 'node:test';
import { chromium } from 'playwright-core';
import { connect } from 'puppeteer-core';
import { BrowserPool } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import { withPooledBrowser } from 'pooled-browser/playwright';
import { command, Program } from './run.mjs';

const local = await startLocalPool({ pools: [{ name: 'default', size: 1 }] });
const env = { BROWSER_POOL_BASE_URL: local.baseUrl, BROWSER_POOL_ACCESS_TOKEN: local.token };
after(() => local.close());

/** Sends SIGTERM, upon which the commands release what they have. */
async function end(program) {
  program.signal('SIGTERM');
  assert.equal(await program.ended, 0, program.output);
}

it('serve leases its own browsers', async () => {
  const serve = new Program(command('serve', '--port', '0', '--size', '1', '--json'));
  const [line] = await serve.printed(/^\{"type":"serving".*$/m);
  const { baseUrl, token } = JSON.parse(line);
  const pool = new BrowserPool('default', { baseUrl, token });
  assert.equal((await withPooledBrowser(pool, ({ page }) => page.evaluate('6 * 7'))).value, 42);
  await pool.close();
  await end(serve);
});

it('acquire holds a browser', async () => {
  const holder = new Program(command('acquire', 'default', '--json'), env);
  await holder.printed(/"type":"acquired"/);
  assert.equal(local.stats().leased, 1);
  await end(holder);
  assert.equal(local.stats().leased, 0);
});

it('doctor leases a browser with each driver', async () => {
  const doctor = new Program(command('doctor', 'default'), env);
  assert.equal(await doctor.ended, 0, doctor.output);
  assert.equal(doctor.output.match(/1 \+ 1 = 2/g)?.length, 3, doctor.output);
});

it("proxy serves clients of WebDriver BiDi and of Playwright's own protocol", async () => {
  const proxy = new Program(command('proxy', 'default', '--port', '0', '--json'), env);
  const [line] = await proxy.printed(/^\{"type":"serving".*$/m);
  const { url, playwright } = JSON.parse(line);
  const browserWSEndpoint = `${url.replace('http', 'ws')}/session`;
  const overBidi = await connect({ browserWSEndpoint, protocol: 'webDriverBiDi' });
  const [first] = await overBidi.pages();
  assert.equal(await first.evaluate('6 * 7'), 42);
  await overBidi.disconnect();
  // From 1.59 on.
  if (playwright) {
    const browser = await chromium.connect(playwright);
    const page = await browser.newPage();
    assert.equal(await page.evaluate('6 * 7'), 42);
    await browser.close();
  }
  await end(proxy);
});
