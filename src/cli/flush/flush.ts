import type { BrowserPool } from '../../service/browser-pool.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { interruptible } from '../interruptible.js';
import { openPool } from '../open-pool.js';
import type { ServiceOptions } from '../service-option.js';
import { confirm, hasPerson } from './confirm.js';

/** What the command line says about `flush`. */
export interface FlushOptions extends ServiceOptions {
  yes?: true;
  json?: true;
}

/** Destroys the idle browsers of a pool, once somebody has agreed. */
export async function flush(poolName: string, options: FlushOptions): Promise<void> {
  await interruptible(async (signal) => {
    await using pool = openPool(poolName, options);
    if (!options.yes) await askFirst(pool, signal);
    await pool.flush({ signal });
    const text = options.json
      ? JSON.stringify({ flushed: true, pool: poolName })
      : `Flushed ${poolName}: its idle browsers are destroyed, and the pool fills up again.`;
    process.stdout.write(`${text}\n`);
  });
}

async function askFirst({ idOrName, baseUrl }: BrowserPool, signal: AbortSignal): Promise<void> {
  if (!hasPerson()) throw new CliError(NOBODY_TO_ASK, EXIT.usage);
  const question = `Destroy all idle browsers of pool ${idOrName} at ${baseUrl}, for all its users?`;
  if (!(await confirm(question, signal))) throw new CliError('Nothing was flushed.');
}

const NOBODY_TO_ASK =
  'flush destroys the idle browsers of all users of the pool, and asks first. ' +
  'There is no terminal to ask at: say --yes if that is what you want.';
