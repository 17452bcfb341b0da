import { createRequire } from 'node:module';
import { join } from 'node:path';
import { isRecord } from '../../shared/json.js';

/** A copy of playwright-core. */
export interface PlaywrightCopy {
  readonly version: string;
  /** Returns the file that a program would import. */
  readonly resolve: () => string;
}

/** Packages that bring a copy of playwright-core, which package managers with strict folders hide from the project. */
const BRINGERS = ['playwright', '@playwright/test'];

/** Finds the playwright-core that a program in this folder would import. Undefined if there is none. */
export function findPlaywright(folder = process.cwd()): PlaywrightCopy | undefined {
  const require = createRequire(join(folder, 'noop.js'));
  return copyOf(require) ?? BRINGERS.map((name) => brought(require, name)).find(Boolean);
}

function brought(require: NodeJS.Require, name: string): PlaywrightCopy | undefined {
  try {
    const inner = createRequire(require.resolve(`${name}/package.json`));
    // @playwright/test has it from playwright.
    return copyOf(inner) ?? (name === 'playwright' ? undefined : brought(inner, 'playwright'));
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
