import { expect, it } from 'vitest';
import { serveProxy } from '../../src/index.js';
import { withPooledBrowser } from '../../src/playwright.js';
import { startClient } from '../cli/support.js';
import { useLocalPool } from '../support/local.js';
import { startProgram } from '../support/program.js';
import { installExample, packageOfTests } from '../examples/support.js';
import { useWholeBrowser } from '../support/whole-browser.js';

/**
 * Stagehand 4 loads an extension in the browser, which opens a WebSocket of its own to the URL that the program has. The model of the
 * program is scripted.
 */
const isInstalled = packageOfTests('@browserbasehq/stagehand') !== undefined;
const SKIPPED = isInstalled ? '' : ' (skipped: npm ci --prefix test/sdks installs it)';

// A headless shell has no extensions.
useWholeBrowser();
const used = useLocalPool();

// Node 20 has no WebSocket without the flag. Newer versions ignore it.
const program = ['--experimental-websocket'];
if (isInstalled) program.push(installExample('stagehand/agent.mjs', ['@browserbasehq', 'zod']));
const DONE = 'Stagehand read {"price":3} and left the title Bought\n';
const expectDone = async ({ ended }: Pick<ReturnType<typeof startProgram>, 'ended'>) => {
  const { stdout, stderr } = await ended;
  expect(stdout, stderr).toBe(DONE);
};

it.skipIf(!isInstalled)(`Stagehand 4 works with the URL of a leased browser${SKIPPED}`, async () => {
  const { released } = await withPooledBrowser(used.pool, ({ session }) =>
    expectDone(startProgram([...program, session.cdp_ws_url])),
  );
  expect(released).toBe('destroyed');
});

it.skipIf(!isInstalled)(`Stagehand 4 works with a named browser of a proxy${SKIPPED}`, async () => {
  await using proxy = await serveProxy(used.pool);
  await expectDone(startProgram([...program, `${proxy.url}/alice`]));
  await expectDone(startProgram([...program, `${proxy.url}/alice`]));
});

it.skipIf(!isInstalled).each([
  ['exec', []],
  ['exec --lazy', ['--lazy']],
])(`Stagehand 4 works as the program of %s${SKIPPED}`, async (_command, flags) => {
  const args = ['exec', 'test', ...flags, '--', process.execPath, ...program];
  await expectDone(startClient(args, used.local));
});
