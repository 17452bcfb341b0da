import type { Command } from 'commander';
import { askFirst } from './confirm.js';
import type { Interruption } from './interruption.js';
import {
  ABOUT_ONE_POOL,
  ABOUT_TOKEN,
  addPoolArgument,
  addServiceOption,
  type ServiceOptions,
} from './options.js';
import { onePool, openPool, refuseLocal } from './service.js';
import { printJson } from './terminal.js';

export function define(command: Command, { signal }: Interruption): void {
  addPoolArgument(addServiceOption(command), ABOUT_ONE_POOL)
    .description('Destroys the idle browsers of a pool for all its users, but no leased ones. Asks first.')
    .option('--yes', "don't ask; required without a terminal")
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action(async (pool: string, options: FlushOptions) => flush(pool, options, signal));
}

const HELP = `${ABOUT_TOKEN}

Examples:
  $ pooled-browser flush scrapers --yes --json
  $ pooled-browser flush scrapers`;

interface FlushOptions extends ServiceOptions {
  yes?: true;
  json?: true;
}

/** Destroys the idle browsers of a pool after a confirmation. */
async function flush(given: string, options: FlushOptions, signal: AbortSignal): Promise<void> {
  const { name: poolName, ...at } = await onePool(given, options);
  await refuseLocal(at);
  await using pool = await openPool(poolName, at);
  if (!options.yes) {
    const question = `Destroy all idle browsers of pool ${poolName} at ${pool.baseUrl}, for all its users?`;
    await askFirst(question, 'Nothing was flushed.', signal);
  }
  await pool.flush({ signal });
  if (options.json) printJson({ flushed: true, pool: poolName });
  else
    process.stdout.write(
      `Flushed ${poolName}: the idle browsers are destroyed, and the pool starts new ones.\n`,
    );
}
