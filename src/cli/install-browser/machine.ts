import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { findXvfb, lacksDisplay } from '../../local/display/find-xvfb.js';

/** What the way to a browser depends on. */
export interface Machine {
  system: 'debian' | 'ubuntu' | 'other';
  isRoot: boolean;
  hasAptGet: boolean;
  /** The command line of the installed playwright-core. */
  playwrightInstaller: string | undefined;
  /** Browsers can open windows here: on a screen, or on Xvfb's. */
  opensWindows: boolean;
}

export function readMachine(): Machine {
  return {
    system: readSystem(),
    isRoot: process.getuid?.() === 0,
    hasAptGet: spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).status === 0,
    playwrightInstaller: findPlaywrightInstaller(),
    opensWindows: !lacksDisplay() || findXvfb() !== undefined,
  };
}

/** Ubuntu and its descendants call themselves Debian's, too. */
function readSystem(): Machine['system'] {
  const ids = readIds();
  if (ids.includes('ubuntu')) return 'ubuntu';
  return ids.includes('debian') ? 'debian' : 'other';
}

/** The system's own name and those of the systems that it descends from (os-release(5)). */
function readIds(): string[] {
  try {
    const text = readFileSync('/etc/os-release', 'utf8');
    return [...text.matchAll(/^(?:ID|ID_LIKE)=(.*)$/gm)].flatMap(([, ids]) =>
      ids!.replace(/["']/g, '').toLowerCase().split(/\s+/),
    );
  } catch {
    return [];
  }
}

function findPlaywrightInstaller(): string | undefined {
  try {
    const manifest = createRequire(import.meta.url).resolve('playwright-core/package.json');
    return join(dirname(manifest), 'cli.js');
  } catch {
    return undefined;
  }
}
