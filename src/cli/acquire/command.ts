import type { Command } from 'commander';
import { addLeaseOptions } from '../lease/options.js';
import { ABOUT_TOKEN } from '../service-option.js';
import type { AcquireOptions } from './acquire.js';

export function addAcquire(program: Command): void {
  const command = program
    .command('acquire')
    .summary('hold a browser, and print how to reach it')
    .description('Leases a browser, prints its addresses, and gives it back at Ctrl-C.')
    .argument('<pool>', 'id or name of the pool');
  addLeaseOptions(command)
    .option(
      '--until-eof',
      'give it back when stdin ends, too: when the program that started this one is gone',
    )
    .option('--json', 'print JSON, one line an event')
    .addHelpText('after', HELP)
    .action(async (pool: string, options: AcquireOptions) =>
      (await import('./acquire.js')).acquire(pool, options),
    );
}

const HELP = `${ABOUT_TOKEN}

The addresses that it prints carry secrets: whoever has one drives the browser. They stand on stdout
alone, all else on stderr. As long as nothing is connected to it, a browser has only a limited time:
the service destroys it after the seconds that are printed with it.

Examples:
  $ pooled-browser acquire scrapers
  $ pooled-browser acquire scrapers --name by-hand --tag who=ada --start-url https://example.com
  $ pooled-browser acquire scrapers --json | jq -r --unbuffered '.session.cdp_ws_url // empty'`;
