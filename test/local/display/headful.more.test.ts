import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { describe, expect, it, vi } from 'vitest';
import { startLocalPool } from '../../../src/local.js';
import { findXvfb } from '../../../src/local/display/virtual-display.js';
import { usePerson } from '../pages/support.js';
import { processesOf } from '../../support/processes.js';
import { spawnChild, type Child } from '../children/child.js';
import { startApi, until } from '../support.js';

/** Simulates a machine without a screen. */
function withoutScreen(): void {
  vi.stubEnv('DISPLAY', undefined);
  vi.stubEnv('WAYLAND_DISPLAY', undefined);
  // A headless shell opens no windows.
  vi.stubEnv('CHROME_PATH', undefined);
}

function runs({ folder }: Child, program: string): boolean {
  return processesOf(folder).some(({ command }) => command.includes(program));
}

describe.runIf(process.platform === 'linux' && findXvfb())(
  'a pool with windows, on a machine without a screen',
  () => {
    const person = usePerson();

    it('opens its windows on a virtual screen, in the size of the viewport, and has live views', async () => {
      withoutScreen();
      const viewport = { width: 1024, height: 700 };
      const api = await startApi({ pools: [{ headless: false, size: 2, viewport }, { name: 'headless' }] });
      const session = await api.lease();
      expect(session).toMatchObject({ headless: false, viewport });
      const client = await chromium.connectOverCDP(session.cdp_ws_url);
      const page = client.contexts()[0]!.pages()[0]!;
      const size = await page.evaluate(() => ({
        width: screen.width,
        window: outerWidth,
        agent: navigator.userAgent,
      }));
      expect(size.width).toBe(1024);
      expect(Math.abs(size.window - 1024)).toBeLessThanOrEqual(2);
      expect(size.agent).not.toContain('Headless');

      const view = await person.open(session.browser_live_view_url!);
      await view.locator('canvas[data-pictures]').waitFor();
      await view.getByLabel('Address').fill('data:text/html,<title>Seen</title>');
      await view.keyboard.press('Enter');
      await expect.poll(() => page.title()).toBe('Seen');
      await client.close();

      expect((await api.lease({}, 'headless')).browser_live_view_url).toBeUndefined();
      await api.pool.close();
    });

    it.each([
      ['while its windows are open', (child: Child) => child.output().includes('ready')],
      ['while Xvfb starts', (child: Child) => runs(child, 'Xvfb')],
    ])('leaves neither Xvfb nor browser when its process is killed %s', async (_when, holds) => {
      withoutScreen();
      const child = spawnChild('windows');
      await until('the condition holds', () => holds(child), 120_000);
      expect(runs(child, 'Xvfb')).toBe(true);
      child.process.kill('SIGKILL');
      await child.ended;
      await expect.poll(() => processesOf(child.folder)).toEqual([]);
      rmSync(child.folder, { recursive: true });
    });
  },
);

it.runIf(process.platform === 'linux')(
  'rejects with instructions when there is neither a screen nor Xvfb',
  async () => {
    withoutScreen();
    vi.stubEnv('PATH', '/nowhere');
    await expect(startLocalPool({ pools: [{ headless: false }] })).rejects.toMatchObject({
      name: 'LocalPoolError',
      message: expect.stringContaining('pooled-browser install-browser --headful'),
    });
  },
);

it.each(['chrome-headless-shell', 'headless_shell'])(
  'refuses windows of %s before anything starts',
  async (name) => {
    const executablePath = join(mkdtempSync(join(tmpdir(), 'shell-')), name);
    writeFileSync(executablePath, '', { mode: 0o755 });
    await expect(startLocalPool({ pools: [{ headless: false }], executablePath })).rejects.toMatchObject({
      name: 'InvalidOptionError',
      message: expect.stringMatching(
        /^Pool default has headless: false, but .* opens no windows\. Use a whole Chrome/,
      ),
    });
  },
);
