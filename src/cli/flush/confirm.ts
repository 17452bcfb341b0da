import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';

/** True when there is somebody to ask: on stderr, so that stdout may be a pipe. */
export function hasPerson(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Asks a question; all but a clear yes is a no. Rejects with the signal's reason. */
export async function confirm(question: string, signal: AbortSignal): Promise<boolean> {
  // As a terminal, readline would take Ctrl-C for itself: the signal would never come.
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  try {
    const noMore = once(lines, 'close').then(() => '');
    const answer = await Promise.race([lines.question(`${question} [y/N] `, { signal }), noMore]);
    return /^\s*y(es)?\s*$/i.test(answer);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    lines.close();
  }
}
