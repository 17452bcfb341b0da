import type { Command } from 'commander';

export function addDemo(program: Command): void {
  program
    .command('demo')
    .summary('see the whole of it in a few seconds')
    .description(
      'Starts a pool of two browsers and a small shop on this machine, and orders in it from three jobs at once: ' +
        'with Playwright, with Puppeteer, and with Puppeteer over WebDriver BiDi. One of them has to wait.',
    )
    .addHelpText('after', HELP)
    .action(async () => (await import('./demo.js')).demo());
}

const HELP = `
It needs no network and no account, and leaves nothing behind.

Example:
  $ pooled-browser demo`;
