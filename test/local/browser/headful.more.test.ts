import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { startLocalPool } from '../../../src/local.js';
import { findXvfb, VirtualDisplay } from '../../../src/local/browser/virtual-display.js';
import { processesOf } from '../../support/processes.js';
import { expectNothingLeft, spawnChild, type Child } from '../children/child.js';
import { usePerson } from '../pages/support.js';
import { drive, startApi, until } from '../support.js';

const isLinux = process.platform === 'linux';

/** Simulates a machine without a screen. */
function withoutScreen(): void {
  vi.stubEnv('DISPLAY', undefined);
  vi.stubEnv('WAYLAND_DISPLAY', undefined);
  // A headless shell opens no windows.
  vi.stubEnv('CHROME_PATH', undefined);
}

function program(name: string, content = ''): { folder: string; path: string } {
  const folder = mkdtempSync(join(tmpdir(), 'program-'));
  writeFileSync(join(folder, name), content, { mode: 0o755 });
  return { folder, path: join(folder, name) };
}

function runsXvfb({ folder }: Child): boolean {
  return processesOf(folder).some(({ command }) => command.includes('Xvfb'));
}

describe.runIf(isLinux && findXvfb())('a pool with windows, on a machine without a screen', () => {
  const person = usePerson();

  it('opens its windows on a virtual screen, in the size of the viewport, and has live views', async () => {
    withoutScreen();
    const viewport = { width: 1024, height: 700 };
    const api = await startApi({ pools: [{ headless: false, size: 2, viewport }, { name: 'headless' }] });
    const session = await api.lease();
    expect(session).toMatchObject({ headless: false, viewport });
    await drive(session, async (page) => {
      const [screenWidth, width] = await page.evaluate<[number, number]>('[screen.width, outerWidth]');
      expect(screenWidth).toBe(1024);
      expect(Math.abs(width - 1024)).toBeLessThanOrEqual(2);
      expect(await page.evaluate('navigator.userAgent')).not.toContain('Headless');

      const view = await person.open(session.browser_live_view_url!);
      await view.locator('canvas[data-pictures]').waitFor();
      await view.getByLabel('Address').fill('data:text/html,<title>Seen</title>');
      await view.keyboard.press('Enter');
      await expect.poll(() => page.title()).toBe('Seen');
    });
    expect((await api.lease({}, 'headless')).browser_live_view_url).toBeUndefined();
    await api.pool.close();
  });

  it.each([
    ['while its windows are open', (child: Child) => child.output().includes('ready')],
    ['while Xvfb starts', runsXvfb],
  ])('leaves neither Xvfb nor browser when its process is killed %s', async (_when, holds) => {
    withoutScreen();
    const child = spawnChild('windows');
    await until('the condition holds', () => holds(child), 120_000);
    expect(runsXvfb(child)).toBe(true);
    child.process.kill('SIGKILL');
    await child.ended;
    await expectNothingLeft(child);
  });
});

it.runIf(isLinux)('rejects with instructions when there is neither a screen nor Xvfb', async () => {
  withoutScreen();
  vi.stubEnv('PATH', '/nowhere');
  await expect(startLocalPool({ pools: [{ headless: false }] })).rejects.toMatchObject({
    name: 'LocalPoolError',
    message: expect.stringContaining('pooled-browser install-browser --headful'),
  });
});

it.each(['chrome-headless-shell', 'headless_shell'])(
  'refuses windows of %s before anything starts',
  async (name) => {
    const { path: executablePath } = program(name);
    await expect(startLocalPool({ pools: [{ headless: false }], executablePath })).rejects.toMatchObject({
      name: 'InvalidOptionError',
      message: expect.stringMatching(
        /^Pool default has headless: false, but .* opens no windows\. Use a whole Chrome/,
      ),
    });
  },
);

/** Writes the line break late, as Xvfb does on a busy machine, and logs whether the write succeeded. */
const SLOW_XVFB = `#!/bin/sh
trap '' PIPE
printf 7 >&3
sleep 0.3
if printf '\\n' >&3; then echo alive > "$0.log"; else echo ended > "$0.log"; exit 1; fi
exec 3>&-
exec sleep 60
`;

it.runIf(isLinux)('reads the whole line in which Xvfb reports its display number', async () => {
  const { folder, path } = program('Xvfb', SLOW_XVFB);
  vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`);
  const display = new VirtualDisplay([{ headless: false, viewport: { width: 800, height: 600 } }]);
  expect((await display.start()).name).toBe(':7');
  await expect.poll(() => readFileSync(`${path}.log`, 'utf8')).toBe('alive\n');
  await display.close();
});
