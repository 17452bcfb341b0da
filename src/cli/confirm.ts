import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { printable } from '../shared/redact.js';
import { CliError, EXIT } from './errors.js';

/**
 * Asks a question on stderr, so that stdout may be a pipe.
 *
 * @param refusal The message after another answer than "y" or "yes".
 * @throws CliError unless the answer is yes; the reason of the signal.
 */
export async function askFirst(question: string, refusal: string, signal: AbortSignal): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new CliError(`There is no terminal to ask: ${question} To answer yes, pass --yes.`, EXIT.usage);
  // In terminal mode, readline would consume Ctrl-C, and no signal would arrive.
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  try {
    const closed = once(lines, 'close').then(() => '');
    const answer = await Promise.race([lines.question(`${printable(question)} [y/N] `, { signal }), closed]);
    if (!/^\s*y(es)?\s*$/i.test(answer)) throw new CliError(refusal);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    lines.close();
  }
}
