import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { devNull, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { findBrowser } from '../../src/local.js';

it('finds an executable browser and prints nothing', async () => {
  const printed = [vi.spyOn(console, 'log'), vi.spyOn(console, 'warn'), vi.spyOn(console, 'error')];
  const path = await findBrowser();
  expect(() => accessSync(path, constants.X_OK)).not.toThrow();
  for (const print of printed) expect(print).not.toHaveBeenCalled();
});

it('prefers the option to CHROME_PATH, which it prefers to Chrome and Chromium on the PATH', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'browsers-'));
  const install = (name: string) => writeFile(join(folder, name), '', { mode: 0o755 });
  vi.stubEnv('CHROME_PATH', '');
  vi.stubEnv('PATH', `${folder}${delimiter}${process.env['PATH']}`);
  await install('chromium-browser');
  expect(dirname(await findBrowser())).toBe(folder);
  await install('google-chrome-stable');
  expect(await findBrowser()).toBe(join(folder, 'google-chrome-stable'));
  vi.stubEnv('CHROME_PATH', process.execPath);
  expect(await findBrowser()).toBe(process.execPath);
  expect(await findBrowser({ executablePath: '/bin/sh' })).toBe('/bin/sh');
  await rm(folder, { recursive: true });
});

it('refuses an unknown option, and uses no other browser than the configured one', async () => {
  await expect(findBrowser({ path: '/bin/sh' } as object)).rejects.toThrow('findBrowser has no option path');
  const message = /option executablePath is .*null, which is not an executable file.*\n.*install-browser/;
  await expect(findBrowser({ executablePath: devNull })).rejects.toMatchObject({
    code: 'ERR_BROWSER_NOT_FOUND',
    message: expect.stringMatching(message),
  });
  vi.stubEnv('CHROME_PATH', '/no/such/chrome');
  await expect(findBrowser()).rejects.toThrow('CHROME_PATH is /no/such/chrome');
});
