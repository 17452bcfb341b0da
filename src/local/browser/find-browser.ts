import { accessSync, constants, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { environment } from '../../shared/environment.js';
import { BrowserNotFoundError } from '../../shared/lease-errors.js';
import { optional, readOptions, text, type OptionsInput } from '../../shared/options.js';

const findBrowserOptions = {
  /** Path to use. No other place is searched. */
  executablePath: optional(text()),
};

/** Options of `findBrowser`. */
export interface FindBrowserOptions extends OptionsInput<typeof findBrowserOptions> {}

/**
 * Finds a Chrome or Chromium on this machine: the option `executablePath`, else the environment variable `CHROME_PATH`,
 * else an installed browser, else the Chromium that Playwright downloaded.
 *
 * @returns The path of its executable.
 * @throws BrowserNotFoundError with instructions to install a browser.
 */
export async function findBrowser(options: FindBrowserOptions = {}): Promise<string> {
  const { executablePath } = readOptions(findBrowserOptions, options, 'findBrowser');
  if (executablePath !== undefined) return requireExecutable(executablePath, 'The option executablePath');
  const fromEnvironment = environment.chromePath();
  if (fromEnvironment !== undefined) {
    return requireExecutable(fromEnvironment, 'The environment variable CHROME_PATH');
  }
  const found = (await installedBrowser()) ?? debianChromium() ?? (await playwrightChromium());
  if (found !== undefined) return found;
  throw new BrowserNotFoundError(`This machine has no Chrome or Chromium.\n${INSTRUCTIONS}`);
}

const INSTRUCTIONS =
  'Download a browser: npx pooled-browser install-browser\n' +
  'Or set its path: the option executablePath, or the environment variable CHROME_PATH.';

/** Another browser instead of the requested one would hide the mistake. */
function requireExecutable(path: string, source: string): string {
  if (isExecutable(path)) return path;
  throw new BrowserNotFoundError(`${source} is ${path}, which is not an executable file.\n${INSTRUCTIONS}`);
}

async function installedBrowser(): Promise<string | undefined> {
  try {
    const { Launcher } = await import('chrome-launcher');
    return Launcher.getInstallations().find(isExecutable);
  } catch {
    // chrome-launcher throws when it finds no browser, and on unknown platforms.
    return undefined;
  }
}

function debianChromium(): string | undefined {
  return ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(isExecutable);
}

async function playwrightChromium(): Promise<string | undefined> {
  try {
    createRequire(import.meta.url).resolve('playwright-core');
    const { chromium } = await import('playwright-core');
    const path = chromium.executablePath();
    return isExecutable(path) ? path : undefined;
  } catch {
    return undefined;
  }
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
