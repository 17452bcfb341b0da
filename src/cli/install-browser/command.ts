import type { Command } from 'commander';
import type { InstallOptions } from './install-browser.js';

export function addInstallBrowser(program: Command): void {
  program
    .command('install-browser')
    .summary('make sure that this machine has a browser')
    .description('Finds an installed Chrome or Chromium, or installs one, and prints its path.')
    .option('--headful', 'also make sure that browsers can open windows: Xvfb where there is no screen')
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action(async (options: InstallOptions) =>
      (await import('./install-browser.js')).installBrowser(options),
    );
}

const HELP = `
Where there is none:
  as root on Debian    apt-get update, apt-get install -y --no-install-recommends chromium
  elsewhere            the installer of the package playwright-core
With --headful, as root on Debian and Ubuntu, where there is neither screen nor Xvfb:
                       apt-get update, apt-get install -y --no-install-recommends xvfb
It says what it runs before it does, and never calls sudo.

Examples:
  $ pooled-browser install-browser
  $ pooled-browser install-browser --headful
  $ pooled-browser install-browser --json | jq -r .executablePath`;
