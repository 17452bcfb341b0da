import { createRequire } from 'node:module';
import { BrowserNotFoundError } from '../../shared/lease-errors.js';
import { rejectUnknownOptions } from '../../shared/errors.js';
import { environment } from '../../shared/environment.js';
import { isExecutable } from './is-executable.js';

/** Options of `findBrowser`. */
export interface FindBrowserOptions {
  /** A path to use and no other. */
  executablePath?: string | undefined;
}

/**
 * Path of a Chrome or Chromium on this machine: the given one, else the environment's `CHROME_PATH`, else an installed
 * one, else the Chromium that Playwright downloaded. Throws `BrowserNotFoundError`, which says how to get one.
 */
export async function findBrowser(options: FindBrowserOptions = {}): Promise<string> {
  rejectUnknownOptions(options, ['executablePath'], 'findBrowser');
  const { executablePath } = options;
  if (executablePath !== undefined) return mustRun(executablePath, 'The option executablePath');
  const named = environment.chromePath();
  if (named !== undefined) return mustRun(named, 'The environment variable CHROME_PATH');
  const found = (await installedBrowser()) ?? debianChromium() ?? (await playwrightChromium());
  if (found !== undefined) return found;
  throw new BrowserNotFoundError(`No Chrome or Chromium was found on this machine.\n${HOW_TO_GET_ONE}`);
}

const HOW_TO_GET_ONE =
  'Download one: npx pooled-browser install-browser\n' +
  'Or name one: the option executablePath, or the environment variable CHROME_PATH.';

/** A path that was named must hold: taking another browser in silence would hide the mistake. */
function mustRun(path: string, source: string): string {
  if (isExecutable(path)) return path;
  throw new BrowserNotFoundError(
    `${source} names ${path}, and there is no program to run.\n${HOW_TO_GET_ONE}`,
  );
}

async function installedBrowser(): Promise<string | undefined> {
  try {
    const { Launcher } = await import('chrome-launcher');
    return Launcher.getInstallations().find(isExecutable);
  } catch {
    // It throws where it finds nothing, and where it does not know the platform.
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
