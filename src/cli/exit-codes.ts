import { constants } from 'node:os';

/** Exit codes of every command; documented by `pooled-browser --help`. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  /** To this the number of the signal is added. */
  signal: 128,
} as const;

export const EXIT_CODES = `
Exit codes:
  0    done; a serve that was told to stop is done, too
  1    failed; the reason stands on stderr
  2    wrong usage: an unknown command, option or value
  130  interrupted by Ctrl-C before it was done (129: SIGHUP, 143: SIGTERM)`;

/** The code by which shells know that a signal ended a program. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return EXIT.signal + constants.signals[signal];
}
