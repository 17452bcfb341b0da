import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { MissingLibraryError } from './errors.js';
import { isRecord } from './json.js';

/**
 * The oldest version of each optional peer with which this package works. The peer ranges are open, so that npm installs this
 * package beside any version: a project may have a package for something else, and an old version of it.
 */
export const OLDEST: Readonly<Record<string, string>> = {
  '@modelcontextprotocol/sdk': '1.13.0',
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
  for (const path of manifestsOf(name, createRequire(file).resolve)) {
    try {
      const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
      if (isRecord(manifest) && typeof manifest['version'] === 'string') return manifest['version'];
    } catch {
      // The next one may exist.
    }
  }
  return undefined;
}

/**
 * Not each package exports its package.json, or exports another file by this name: it is also searched for in the folders in which Node
 * searches.
 */
function* manifestsOf(name: string, resolve: NodeJS.RequireResolve): Generator<string> {
  try {
    yield resolve(`${name}/package.json`);
  } catch {
    // The package is missing, or does not export the file.
  }
  for (const folder of resolve.paths(name) ?? []) yield join(folder, name, 'package.json');
}

/** Compares major, minor and patch. A prerelease counts as its release. */
export function isOlder(a: string, b: string): boolean {
  const [left, right] = [a, b].map((version) => version.split(/[.+-]/).slice(0, 3).map(Number));
  const index = left!.findIndex((part, at) => part !== right![at]);
  return index >= 0 && left![index]! < right![index]!;
}
