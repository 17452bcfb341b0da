import { accessSync, constants, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { environment } from '../../shared/environment.js';
import { BrowserNotFoundError } from '../../shared/lease-errors.js';
import { checksOf, optional, readOptions, text } from '../../shared/options.js';

/** Options of `findBrowser`. */
export interface FindBrowserOptions {
  /** Path to use. No other place is searched. */
  executablePath?: string | undefined;
}

const findBrowserChecks = checksOf<FindBrowserOptions>()({ executablePath: optional(text()) });

/**
 * Finds a Chrome or Chromium on this machine: the option `executablePath`, else the environment variable `CHROME_PATH`,
 * else an installed browser, else the Chromium that Playwright downloaded.
 *
 * @returns The path of its executable.
 * @throws BrowserNotFoundError with instructions to install a browser.
 */
export async function findBrowser(options: FindBrowserOptions = {}): Promise<string> {
  const { executablePath } = readOptions(findBrowserChecks, options, 'findBrowser');
  if (executablePath !== undefined) return requireExecutable(executablePath, 'The option executablePath');
  const fromEnvironment = environment.chromePath();
  if (fromEnvironment !== undefined) {
    return requireExecutable(fromEnvironment, 'The environment variable CHROME_PATH');
  }
  const found = browserPaths().find(isExecutable) ?? (await playwrightChromium());
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

/** Chrome's headless shell, Debian's chromium-headless-shell, or the one that Playwright downloads: they open no windows. */
export function isHeadlessShell(path: string): boolean {
  return /headless[-_]shell/.test(path);
}

/** Paths where installers put Chrome and Chromium; the preferred browser first. */
export function browserPaths(platform: string = process.platform): string[] {
  if (platform === 'darwin') {
    const names = ['Google Chrome', 'Google Chrome Canary', 'Chromium'];
    const folders = ['/Applications', `${homedir()}/Applications`];
    return names.flatMap((name) => folders.map((folder) => `${folder}/${name}.app/Contents/MacOS/${name}`));
  }
  if (platform === 'win32') {
    const names = ['Google\\Chrome', 'Google\\Chrome SxS', 'Chromium'];
    const folders = environment.windowsPrograms();
    return names.flatMap((name) => folders.map((folder) => `${folder}\\${name}\\Application\\chrome.exe`));
  }
  const names = ['google-chrome-stable', 'google-chrome', 'chromium-browser', 'chromium'];
  // A PATH without /usr/bin, as of some services, must not hide the browser.
  const folders = [...environment.programFolders(), '/usr/bin'];
  return names.flatMap((name) => folders.map((folder) => `${folder}/${name}`));
}

async function playwrightChromium(): Promise<string | undefined> {
  try {
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
