import { inspect } from 'node:util';
import { CommanderError, type Command } from 'commander';
import {
  InvalidOptionError,
  isPooledBrowserError,
  sentence,
  withoutSecrets,
  type PooledBrowserError,
} from '../shared/errors.js';
import { isError } from '../shared/globals.js';
import { AcquireTimeoutError, BrowserNotFoundError, ConnectError } from '../shared/lease-errors.js';
import { redact } from '../shared/redact.js';
import { PoolConnectionError, PoolResponseError, PoolServiceError } from '../shared/service-errors.js';
import { CliError, EXIT, ExitStatus } from './errors.js';
import { NO_POOL } from './service.js';
import { note, oneLine } from './terminal.js';

/**
 * Prints an error without secrets, with the command that helps, and without its stack unless `--debug` is set.
 *
 * @param program Undefined if it could not be created.
 * @returns The exit code.
 */
export function reportError(error: unknown, program: Command | undefined): number {
  // Commander has printed this error. Its own code for wrong usage is 1.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof ExitStatus) return error.exitCode;
  const other = error instanceof InvalidOptionError ? EXIT.usage : EXIT.failed;
  const code = error instanceof CliError ? error.exitCode : other;
  const { debug } = program?.opts<{ debug?: boolean }>() ?? {};
  const text = () => {
    const message = oneLine(messageOf(error, program));
    const next = message.includes('pooled-browser ') ? undefined : nextCommand(error, code, program);
    return next === undefined ? message : `${sentence(message)} ${next}`;
  };
  note(redact(debug ? inspect(withoutSecrets(error)) : text()));
  return code;
}

/** What the user runs next. */
function nextCommand(error: unknown, code: number, program: Command | undefined): string | undefined {
  const name = program?.args[0];
  const command = program?.commands.find((one) => one.name() === name);
  if (code === EXIT.usage) return `For help, run: ${commandLine(name, '--help')}`;
  if (error instanceof BrowserNotFoundError) return 'Install one: pooled-browser install-browser';
  if (name !== 'doctor' && OF_SERVICES.some((kind) => error instanceof kind)) {
    const { service, baseUrl } = command?.opts<{ service?: string; baseUrl?: string }>() ?? {};
    const { pool } = error as PooledBrowserError;
    const at = [service && `--service ${service}`, baseUrl && `--base-url ${baseUrl}`];
    return `To find the cause, run: ${commandLine('doctor', pool === NO_POOL ? undefined : pool, ...at)}`;
  }
  const isKnown = error instanceof CliError || isPooledBrowserError(error);
  return isKnown ? undefined : 'To see the stack, add --debug.';
}

/** The errors whose cause `doctor` finds. */
const OF_SERVICES = [
  AcquireTimeoutError,
  ConnectError,
  PoolConnectionError,
  PoolResponseError,
  PoolServiceError,
];

export function commandLine(...words: readonly (string | undefined)[]): string {
  return ['pooled-browser', ...words.filter((word) => word !== undefined)].join(' ');
}

function messageOf(error: unknown, program: Command | undefined): string {
  if (error instanceof InvalidOptionError) return nameFlag(error, program?.commands ?? []);
  if (isPooledBrowserError(error)) return withFlags(error.message);
  return isError(error) ? error.message : String(error);
}

/** Replaces the options that messages of the library advise to change by their flags. */
export function withFlags(message: string): string {
  return message.replaceAll(/\b(?:baseUrl|acquireTimeout|unreachableTimeout|stopAfterFailures)\b/g, flagOf);
}

function flagOf(option: string): string {
  return VARIABLES[option] ?? `--${option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Replaces the name of a library option by the flag or variable that set its value. */
function nameFlag({ option, message }: InvalidOptionError, commands: readonly Command[]): string {
  const name = option.split('.').at(-1)!;
  const flags = commands.flatMap(({ options }) => options);
  const source = VARIABLES[name] ?? flags.find((flag) => flag.attributeName() === name)?.long;
  if (source === undefined) return message;
  return message.startsWith(option) ? source + message.slice(option.length) : `${source}: ${message}`;
}

const VARIABLES: Readonly<Record<string, string>> = {
  baseUrl: '--base-url or BROWSER_POOL_BASE_URL',
  token: 'BROWSER_POOL_ACCESS_TOKEN',
};
