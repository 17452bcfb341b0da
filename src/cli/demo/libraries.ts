import { CliError } from '../cli-error.js';
import { isInstalled } from '../is-installed.js';

const LIBRARIES = ['playwright-core', 'puppeteer-core', 'chromium-bidi'] as const;

/** All at once: to be sent off three times for one package each would be a poor welcome. */
export function requireLibraries(): void {
  const missing = LIBRARIES.filter((name) => !isInstalled(name));
  if (missing.length === 0) return;
  throw new CliError(
    `The demo shows every library and protocol, and needs ${missing.join(' and ')}.\n` +
      `Install what is missing: npm install ${missing.join(' ')}`,
  );
}

export async function loadLibraries(): Promise<void> {
  await Promise.all([import('playwright-core'), import('puppeteer-core')]);
}
