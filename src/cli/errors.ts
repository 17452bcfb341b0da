import { constants } from 'node:os';

/** Exit codes of every command. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  /** The codes of a shell for a program that can't be started, and for one that does not exist. */
  notStarted: 126,
  notFound: 127,
  /** The number of the signal is added to this code. */
  signal: 128,
} as const;

/** The exit codes as `--help` of a command shows them. */
export function exitCodesOf(command: string): string {
  const exec = `
With exec, the code is that of the command; 127: no such command, 126: the command can't be started`;
  return `
Exit codes:
  0    success${STOPPED.includes(command) ? '; also when Ctrl-C stops it' : ''}
  1    failure; the reason is on stderr
  2    wrong usage: an unknown command, option or value, or no address or token of the service
  130  interrupted by Ctrl-C before the end (129: SIGHUP, 143: SIGTERM)${command === 'exec' ? exec : ''}`;
}

/** The commands that run until Ctrl-C. */
const STOPPED = ['serve', 'proxy', 'mcp', 'acquire', 'work'];

/** Returns the exit code of a program that a signal ended. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return EXIT.signal + constants.signals[signal];
}

/** A failure of the command line itself, with a message for its user. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.failed, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** Ends the program with an exit code and prints nothing: the command has printed everything. */
export class ExitStatus extends Error {
  override readonly name = 'ExitStatus';
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`Exit code ${exitCode}`);
    this.exitCode = exitCode;
  }
}

export const NO_ADDRESS =
  'The address of the service is missing: pass --base-url, or set BROWSER_POOL_BASE_URL to your service, or to local ' +
  'for Chromium on this machine: export BROWSER_POOL_BASE_URL=local';
