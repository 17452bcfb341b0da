import { createRequire } from 'node:module';
import { join } from 'node:path';
import { isRecord } from '../../shared/json.js';

export interface PlaywrightCopy {
  readonly version: string;
  /** Returns the file that a program would import. */
  readonly resolve: () => string;
}

/** Packages of a project that bring a copy of playwright-core, which package managers with strict folders hide from the project. */
const BRINGERS = ['playwright', '@playwright/test'];

/** The package of Playwright that a project in this folder uses. Another one beside it could have another version. */
export function playwrightPackage(folder = process.cwd()): string {
  const require = createRequire(join(folder, 'noop.js'));
  return BRINGERS.findLast((name) => insideOf(require, name)) ?? 'playwright-core';
}

/** Finds the playwright-core that a program in this folder would import. Undefined if there is none. */
export function findPlaywright(folder = process.cwd()): PlaywrightCopy | undefined {
  const require = createRequire(join(folder, 'noop.js'));
  return copyOf(require) ?? BRINGERS.map((name) => brought(require, name)).find(Boolean);
}

function brought(require: NodeJS.Require, name: string): PlaywrightCopy | undefined {
  const inner = insideOf(require, name);
  // @playwright/test has it from playwright.
  return inner && (copyOf(inner) ?? (name === 'playwright' ? undefined : brought(inner, 'playwright')));
}

/** What resolves the packages that a package needs. Undefined if it is not installed. */
function insideOf(require: NodeJS.Require, name: string): NodeJS.Require | undefined {
  try {
    return createRequire(require.resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}

function copyOf(require: NodeJS.Require): PlaywrightCopy | undefined {
  try {
    const manifest: unknown = require('playwright-core/package.json');
    const version = isRecord(manifest) ? manifest['version'] : undefined;
    if (typeof version !== 'string') return undefined;
    return { version, resolve: () => require.resolve('playwright-core') };
  } catch {
    return undefined;
  }
}
