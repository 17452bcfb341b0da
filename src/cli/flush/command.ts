import type { Command } from 'commander';
import { ABOUT_TOKEN, addServiceOption } from '../service-option.js';
import type { FlushOptions } from './flush.js';

export function addFlush(program: Command): void {
  const command = program
    .command('flush')
    .summary('destroy the idle browsers of a pool')
    .description(
      'Destroys all idle browsers of a pool, whoever uses it; leased ones are not affected. Asks first.',
    )
    .argument('<pool>', 'id or name of the pool');
  addServiceOption(command)
    .option('--yes', "don't ask; without a terminal there is nobody to ask, and this is required")
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action(async (pool: string, options: FlushOptions) => (await import('./flush.js')).flush(pool, options));
}

const HELP = `${ABOUT_TOKEN}

Examples:
  $ pooled-browser flush scrapers
  $ pooled-browser flush scrapers --yes --json`;
