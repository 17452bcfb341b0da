import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { printable } from '../shared/redact.js';
import { CliError, EXIT } from './errors.js';

/** How to ask. */
interface Confirmation {
  readonly signal: AbortSignal;
  /** The message after another answer than yes. */
  readonly refusal: string;
  /** The message if there is nobody to ask. */
  readonly withoutTerminal: string;
}

/** Asks a question, and throws unless the answer is yes. */
export async function askFirst(
  question: string,
  { signal, refusal, withoutTerminal }: Confirmation,
): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new CliError(withoutTerminal, EXIT.usage);
  if (!(await confirm(question, signal))) throw new CliError(refusal);
}

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
