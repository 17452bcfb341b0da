import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import { leaseBrowser } from '../../src/playwright.js';
import { findXvfb } from '../../src/local/browser/virtual-display.js';
import { usePerson } from '../local/pages/support.js';
import { expectRefusal, runHere, startCli } from '../cli/support.js';

const folder = mkdtempSync(join(tmpdir(), 'local-windows-'));
afterAll(() => rmSync(folder, { recursive: true }));
const person = usePerson();

it('gives the browsers of local the flags of the option args, and a live view that shows them', async () => {
  const local = { size: 1, args: ['--user-agent=flagged/1.0'], liveView: true, recordings: folder } as const;
  await using pool = new BrowserPool('views', { baseUrl: 'local', local });
  await using lease = await leaseBrowser(pool);
  expect(await lease.page.evaluate(() => navigator.userAgent)).toBe('flagged/1.0');
  const view = await person.open(lease.liveViewUrl!);
  await view.locator('canvas[data-pictures]').waitFor();
});

it('refuses a flag that the pool sets itself, before a browser starts', () => {
  const create = () =>
    new BrowserPool('views', { baseUrl: 'local', local: { args: ['--user-data-dir=/tmp'] } });
  expect(create).toThrow("local.args must not contain '--user-data-dir=/tmp': the pool sets this flag");
});

it('refuses --headful for a pool of a service, and says where windows can be had', async () => {
  const script = join(import.meta.dirname, '../cli/programs/task.mjs');
  const ended = await runHere(['map', 'kernel:shop', script, '--headful'], { token: 'token-of-a-service' });
  expectRefusal(ended, '--headful shows the windows of browsers on this machine');
});

describe.runIf(process.platform === 'linux' && findXvfb())('windows of local browsers', () => {
  const WITHOUT_SCREEN = { DISPLAY: undefined, WAYLAND_DISPLAY: undefined, CHROME_PATH: undefined };
  const SHOWN = ['-e', 'console.log("view", process.env.BROWSER_POOL_LIVE_VIEW_URL)'];

  it.each([
    ['the flag --headful', ['--headful'], {}],
    ['the variable BROWSER_POOL_LOCAL_HEADFUL', [], { BROWSER_POOL_LOCAL_HEADFUL: '1' }],
  ])('open with %s, and the address of the live view is printed', async (_how, flags, variables) => {
    const environment = { ...WITHOUT_SCREEN, ...variables, BROWSER_POOL_LOCAL_RECORDINGS: folder };
    const program = startCli(['exec', ...flags, 'local', '--', process.execPath, ...SHOWN], environment);
    const { code, stdout, stderr } = await program.ended;
    expect(code).toBe(0);
    const [, url = ''] = /^pooled-browser: Live view: (http:\/\/127\.0\.0\.1:\S+)$/m.exec(stderr) ?? [];
    expect(stdout).toBe(`view ${url}\n`);
  });
});
