import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import type { BrowserPool } from '../service/browser-pool.js';
import { CliError, EXIT } from './errors.js';
import type { Interruption } from './interruption.js';
import { ABOUT_TOKEN, addServiceOption, type ServiceOptions } from './options.js';
import { openPool } from './service.js';
import { printable } from '../shared/redact.js';
import { printJson } from './terminal.js';

export function define(command: Command, { signal }: Interruption): void {
  addServiceOption(command)
    .description('Destroys the idle browsers of a pool for all its users, but no leased ones. Asks first.')
    .argument('<pool>', 'id or name of the pool')
    .option('--yes', "don't ask; required without a terminal")
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action(async (pool: string, options: FlushOptions) => flush(pool, options, signal));
}

const HELP = `${ABOUT_TOKEN}

Examples:
  $ pooled-browser flush scrapers
  $ pooled-browser flush scrapers --yes --json`;

interface FlushOptions extends ServiceOptions {
  yes?: true;
  json?: true;
}

/** Destroys the idle browsers of a pool after a confirmation. */
async function flush(poolName: string, options: FlushOptions, signal: AbortSignal): Promise<void> {
  await using pool = await openPool(poolName, options);
  if (!options.yes) await askFirst(pool, signal);
  await pool.flush({ signal });
  if (options.json) printJson({ flushed: true, pool: poolName });
  else
    process.stdout.write(
      `Flushed ${poolName}: the idle browsers are destroyed, and the pool starts new ones.\n`,
    );
}

async function askFirst({ idOrName, baseUrl }: BrowserPool, signal: AbortSignal): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new CliError(NO_TERMINAL, EXIT.usage);
  const question = `Destroy all idle browsers of pool ${idOrName} at ${baseUrl}, for all its users?`;
  if (!(await confirm(question, signal))) throw new CliError('Nothing was flushed.');
}

const NO_TERMINAL =
  'flush destroys the idle browsers for all users of the pool and asks for confirmation, but there is no terminal. ' +
  'To flush without confirmation, pass --yes.';

/**
 * Asks a question on stderr, so that stdout may be a pipe.
 *
 * @returns True only for "y" or "yes". Rejects with the reason of the signal.
 */
async function confirm(question: string, signal: AbortSignal): Promise<boolean> {
  // In terminal mode, readline would consume Ctrl-C, and no signal would arrive.
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  try {
    const closed = once(lines, 'close').then(() => '');
    const answer = await Promise.race([lines.question(`${printable(question)} [y/N] `, { signal }), closed]);
    return /^\s*y(es)?\s*$/i.test(answer);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    lines.close();
  }
}
