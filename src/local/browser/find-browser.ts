import { accessSync, constants, statSync } from 'node:fs';
import { homedir } from 'node:os';
import type { LocalBrowserKind } from '../../pool/pool-options.js';
import { environment } from '../../shared/environment.js';
import { BrowserNotFoundError } from '../../shared/lease-errors.js';
import { checksOf, oneOf, optional, readOptions, text } from '../../shared/options.js';

/** Options of `findBrowser`. */
export interface FindBrowserOptions {
  /**
   * Which browser: Chrome or Chromium, or Firefox.
   * @default 'chromium'
   */
  browser?: LocalBrowserKind | undefined;
  /** Path to use. No other place is searched. */
  executablePath?: string | undefined;
}

const findBrowserChecks = checksOf<FindBrowserOptions>()({
  browser: optional(oneOf('chromium', 'firefox'), 'chromium'),
  executablePath: optional(text()),
});

/**
 * Finds a browser on this machine: the option `executablePath`, else the environment variable `CHROME_PATH` or `FIREFOX_PATH`,
 * else an installed browser, else the Chromium that Playwright downloaded.
 *
 * @returns The path of its executable.
 * @throws BrowserNotFoundError with instructions to install a browser.
 */
export async function findBrowser(options: FindBrowserOptions = {}): Promise<string> {
  const { browser, executablePath } = readOptions(findBrowserChecks, options, 'findBrowser');
  const { name, variable, command, paths, download } = PLACES[browser];
  const instructions =
    `Download a browser: npx pooled-browser ${command}\n` +
    `Or set its path: the option executablePath, or the environment variable ${variable}.`;
  // Another browser instead of the requested one would hide the mistake.
  const require = (path: string, source: string) => {
    if (isExecutable(path)) return path;
    throw new BrowserNotFoundError(`${source} is ${path}, which is not an executable file.\n${instructions}`);
  };
  if (executablePath !== undefined) return require(executablePath, 'The option executablePath');
  const fromEnvironment = environment.browserPath(variable);
  if (fromEnvironment !== undefined) return require(fromEnvironment, `The environment variable ${variable}`);
  const found = paths().find(isExecutable) ?? (await download?.());
  if (found !== undefined) return found;
  throw new BrowserNotFoundError(`This machine has no ${name}.\n${instructions}`);
}

/** Where a browser is. */
interface Places {
  /** The name of the browser in messages. */
  readonly name: string;
  /** The environment variable with its path. */
  readonly variable: 'CHROME_PATH' | 'FIREFOX_PATH';
  /** The command that installs it. */
  readonly command: string;
  /** Where installers put it; the preferred one first. */
  readonly paths: () => string[];
  /** The path of one that a package downloaded. */
  readonly download?: () => Promise<string | undefined>;
}

export const PLACES: Readonly<Record<LocalBrowserKind, Places>> = {
  chromium: {
    name: 'Chrome or Chromium',
    variable: 'CHROME_PATH',
    command: 'install-browser',
    paths: () => browserPaths(),
    download: () => playwrightChromium(),
  },
  firefox: {
    name: 'Firefox',
    variable: 'FIREFOX_PATH',
    command: 'install-browser firefox',
    paths: () => firefoxPaths(),
  },
};

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
  return pathsOnLinux('google-chrome-stable', 'google-chrome', 'chromium-browser', 'chromium');
}

function firefoxPaths(platform: string = process.platform): string[] {
  if (platform === 'darwin')
    return ['/Applications', `${homedir()}/Applications`].map(
      (folder) => `${folder}/Firefox.app/Contents/MacOS/firefox`,
    );
  if (platform === 'win32')
    return environment.windowsPrograms().map((folder) => `${folder}\\Mozilla Firefox\\firefox.exe`);
  return pathsOnLinux('firefox-esr', 'firefox');
}

function pathsOnLinux(...names: string[]): string[] {
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
