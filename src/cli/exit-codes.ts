import { constants } from 'node:os';

/** Exit codes of every command; documented by `--help`. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  /** As shells have it, of a command that can't be started, and of one that is not found. */
  notStarted: 126,
  notFound: 127,
  /** To this the number of the signal is added. */
  signal: 128,
} as const;

export const EXIT_CODES = `
Exit codes:
  0    done; a serve or an acquire that was told to stop is done, too
  1    failed; the reason stands on stderr
  2    wrong usage: an unknown command, option or value, or no address or token of the service
  130  interrupted by Ctrl-C before it was done (129: SIGHUP, 143: SIGTERM)
exec ends with the code of its command; 127: there is no such command, 126: it could not be started`;

/** The code by which shells know that a signal ended a program. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return EXIT.signal + constants.signals[signal];
}
