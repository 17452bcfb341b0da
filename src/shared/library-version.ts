import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { MissingLibraryError } from './errors.js';
import { isRecord } from './json.js';

/**
 * The oldest version of each optional peer with which this package works. The peer ranges are open, so that npm installs this
 * package beside any version: a project may have a package for something else, and an old version of it.
 */
export const OLDEST: Readonly<Record<string, string>> = {
  '@playwright/test': '1.55.0',
  bullmq: '5.0.0',
  'chromium-bidi': '17.0.2',
  ioredis: '5.0.0',
  'playwright-core': '1.55.0',
  'puppeteer-core': '24.5.0',
  vitest: '3.0.0',
};

/**
 * Checks the installed version of an optional peer. A package that is missing, or whose version can't be read (in a bundle),
 * passes: its import shows whether it works.
 *
 * @throws MissingLibraryError
 */
export function expectVersion(name: string, installed = versionOf(name)): void {
  const oldest = OLDEST[name];
  if (installed === undefined || oldest === undefined || !isOlder(installed, oldest)) return;
  throw new MissingLibraryError(name, { installed, oldest });
}

/** The version of the package that a file would import. */
export function versionOf(name: string, file = import.meta.url): string | undefined {
  try {
    const path = manifestOf(name, createRequire(file).resolve);
    const manifest: unknown = path === undefined ? undefined : JSON.parse(readFileSync(path, 'utf8'));
    return isRecord(manifest) && typeof manifest['version'] === 'string' ? manifest['version'] : undefined;
  } catch {
    return undefined;
  }
}

/** Not each package exports its package.json: it is searched for in the folders in which Node searches. */
function manifestOf(name: string, resolve: NodeJS.RequireResolve): string | undefined {
  try {
    return resolve(`${name}/package.json`);
  } catch {
    const places = resolve.paths(name) ?? [];
    return places.map((folder) => join(folder, name, 'package.json')).find((path) => existsSync(path));
  }
}

/** Compares major, minor and patch. A prerelease counts as its release. */
export function isOlder(a: string, b: string): boolean {
  const [left, right] = [a, b].map((version) => version.split(/[.+-]/).slice(0, 3).map(Number));
  const index = left!.findIndex((part, at) => part !== right![at]);
  return index >= 0 && left![index]! < right![index]!;
}
