import { createRequire } from 'node:module';
import { isInstalled } from '../is-installed.js';
import type { Result } from './check.js';

const DRIVERS = ['playwright-core', 'puppeteer-core'] as const;

/** As package.json has it in `engines`. */
export function checkNode(): Result {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isSupported = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22;
  if (isSupported) return { status: 'ok', detail: process.version };
  return { status: 'failed', detail: process.version, advice: 'Install Node 20.19, 22.12 or newer.' };
}

export function checkLibraries(): Result {
  const installed = DRIVERS.filter(isInstalled);
  const missing = DRIVERS.filter((name) => !installed.includes(name));
  const detail = installed.map((name) => `${name} ${versionOf(name)}`).join(', ');
  if (installed.length === 0) {
    return { status: 'failed', detail: `neither ${DRIVERS.join(' nor ')} is installed`, advice: INSTALL };
  }
  return { status: 'ok', detail: missing.length === 0 ? detail : `${detail}; no ${missing.join(', ')}` };
}

const INSTALL =
  'Install the one that you use: npm install playwright-core, or npm install puppeteer-core. ' +
  'Without one, exec and acquire still work, for programs that bring their own.';

function versionOf(name: string): string {
  try {
    return (createRequire(import.meta.url)(`${name}/package.json`) as { version: string }).version;
  } catch {
    return '(version unknown)';
  }
}
