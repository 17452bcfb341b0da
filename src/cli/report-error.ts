import { inspect } from 'node:util';
import { CommanderError } from 'commander';
import { InvalidOptionError, isPooledBrowserError, withoutSecrets } from '../shared/errors.js';
import { isAcquireTimeoutError } from '../shared/service-errors.js';
import { redact } from '../shared/redact.js';
import { CliError, ExitStatus } from './cli-error.js';
import { EXIT } from './exit-codes.js';

/** Prints what went wrong, never with a secret in it and without a stack unless asked for; returns the exit code. */
export function reportError(error: unknown, debug = false): number {
  // Commander has printed it. Its own code for wrong usage is 1.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof ExitStatus) return error.exitCode;
  const text = debug ? inspect(withoutSecrets(error)) : messageOf(error);
  process.stderr.write(redact(`pooled-browser: ${text}\n`));
  if (error instanceof CliError) return error.exitCode;
  return error instanceof InvalidOptionError ? EXIT.usage : EXIT.failed;
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const isExpected = error instanceof CliError || isPooledBrowserError(error);
  if (!isExpected) return `${message}\n(With --debug it says where.)`;
  // That no browser came in time says nothing of a service that never answered.
  const last = isAcquireTimeoutError(error) && error.cause instanceof Error ? error.cause.message : undefined;
  return last === undefined ? message : `${message}\nThe last failure: ${last}`;
}
