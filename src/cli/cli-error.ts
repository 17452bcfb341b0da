import { EXIT, exitCodeOf } from './exit-codes.js';

/** A failure of the command line itself: its message is for the person at the terminal. */
export class CliError extends Error {
  override readonly name: string = 'CliError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.failed, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** The person, or the system, called the command off. */
export class InterruptedError extends CliError {
  override readonly name = 'InterruptedError';

  constructor(signal: NodeJS.Signals) {
    super(`Interrupted by ${signal}.`, exitCodeOf(signal));
  }
}

/** The command has said all there is to say: only its exit code is left. */
export class ExitStatus extends Error {
  override readonly name = 'ExitStatus';
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`Exit code ${exitCode}`);
    this.exitCode = exitCode;
  }
}
