import { accessSync, constants } from 'node:fs';
import { devNull } from 'node:os';
import { expect, it, vi } from 'vitest';
import { findBrowser } from '../../src/local.js';

it('finds a browser that can be run, and prints nothing', async () => {
  const printed = [vi.spyOn(console, 'log'), vi.spyOn(console, 'warn'), vi.spyOn(console, 'error')];
  const path = await findBrowser();
  expect(() => accessSync(path, constants.X_OK)).not.toThrow();
  for (const print of printed) expect(print).not.toHaveBeenCalled();
});

it('prefers the option to CHROME_PATH, and that to what is installed', async () => {
  vi.stubEnv('CHROME_PATH', process.execPath);
  expect(await findBrowser()).toBe(process.execPath);
  expect(await findBrowser({ executablePath: '/bin/sh' })).toBe('/bin/sh');
});

it('takes no other browser for one that was named and is not there', async () => {
  await expect(findBrowser({ executablePath: devNull })).rejects.toMatchObject({
    code: 'ERR_BROWSER_NOT_FOUND',
    message: expect.stringMatching(/option executablePath names .*null.*\n.*install-browser/),
  });
  vi.stubEnv('CHROME_PATH', '/no/such/chrome');
  await expect(findBrowser()).rejects.toThrow('CHROME_PATH names /no/such/chrome');
});

it('refuses an option that does not exist', async () => {
  await expect(findBrowser({ path: '/bin/sh' } as object)).rejects.toThrow('findBrowser has no option path');
});
