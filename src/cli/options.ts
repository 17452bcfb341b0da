import { InvalidArgumentError, Option, type Command } from 'commander';
import { faultInAllowedHosts } from '../features/allowed-hosts/bypass-list.js';
import { faultInHosts } from '../shared/hosts.js';
import type { LeaseReleaseOptions } from '../calls/options.js';
import { environment } from '../shared/environment.js';
import { parseTime } from '../shared/errors.js';

/** Options of each command that sends requests to a service. */
export interface ServiceOptions {
  baseUrl?: string | undefined;
  service?: string | undefined;
  /** The flag `--headful` of the commands that lease browsers. */
  headful?: true | undefined;
}

export function addServiceOption(command: Command): Command {
  return command
    .option(
      '--service <name>',
      'kernel, browserbase, …, or ./module of an own one (default: BROWSER_POOL_SERVICE)',
    )
    .option('--base-url <url>', 'address of the service, or "local" (default: BROWSER_POOL_BASE_URL)');
}

const ABOUT_POOLS =
  'id or name of the pool, or several: NAME, SERVICE:NAME or local, with commas (default: BROWSER_POOL)';
export const ABOUT_ONE_POOL = 'id or name of the pool: NAME or SERVICE:NAME (default: BROWSER_POOL)';

/** Adds the pool as the first argument. It may be left out where BROWSER_POOL names the pool. */
export function addPoolArgument(command: Command, about = ABOUT_POOLS): Command {
  const pool = environment.pool();
  return command.argument(pool === undefined ? '<pool>' : '[pool]', about, pool);
}

/**
 * Adds the pool and further arguments, of which the first is required. The parser requires none of these: only `separatePool` sees
 * whether the first argument is the pool.
 */
export function addPoolAndArguments(
  command: Command,
  ...further: readonly (readonly [name: string, description: string])[]
): Command {
  addPoolArgument(command);
  const pool = environment.pool() === undefined ? '<pool>' : '[pool]';
  command.usage(['[options]', pool, ...further.map(([name]) => name)].join(' '));
  for (const [name, description] of further)
    command.argument(name.replace('<', '[').replace('>', ']'), description);
  return command;
}

/**
 * Returns the pool and the further arguments of a command.
 *
 * @param required The name of the first further argument.
 * @param isLeftOut Whether the arguments begin without the pool.
 */
export function separatePool(
  command: Command,
  required: string,
  isLeftOut: (args: readonly string[]) => boolean,
): [pool: string, first: string, ...rest: string[]] {
  const { args } = command;
  const pool = environment.pool();
  const isWithoutPool = isLeftOut(args);
  if (isWithoutPool && pool === undefined)
    refuseMissing(command, 'pool', `\nPut its name before the ${required}, or set BROWSER_POOL`);
  const [given, first, ...rest] = isWithoutPool && pool !== undefined ? [pool, ...args] : args;
  if (given === undefined || first === undefined) refuseMissing(command, required);
  return [given, first, ...rest];
}

function refuseMissing(command: Command, name: string, advice = ''): never {
  const message = `error: missing required argument '${name}'${advice}`;
  command.error(message, { code: 'commander.missingArgument' });
}

/** Whether the first argument is a script: no pool has such a name. */
export function isScriptFirst([first = '']: readonly string[]): boolean {
  return /\.[cm]?[jt]sx?$/i.test(first);
}

export const ABOUT_TOKEN = `
The access token is read only from the environment: BROWSER_POOL_ACCESS_TOKEN, or the usual variable
of the service (STEEL_API_KEY, …). Every user of a machine can read the arguments of its processes.`;

/** Options of the commands that lease browsers. Not each command has all of them. */
export interface LeaseCommandOptions
  extends ServiceOptions, Pick<LeaseReleaseOptions, 'release' | 'replays'> {
  name?: string;
  tag?: Readonly<Record<string, string>>;
  startUrl?: string;
  /** In ms. */
  acquireTimeout: number;
  /** In ms. */
  unreachableTimeout: number;
  /** In ms. */
  lifetime?: number;
  releaseOnCrash?: true;
  record?: 'all' | 'failures';
  exposeNetwork?: string | undefined;
  allowHosts?: string;
}

interface OwnOptions {
  readonly acquireTimeout?: string;
  readonly lifetime?: Option;
  readonly record?: Option;
}

/**
 * Adds the options of each command that leases browsers: the same in all of them.
 *
 * @param own Options of which a command has a default of its own. `acquireTimeout` has its unit.
 */
export function addLeaseOptions(
  command: Command,
  { acquireTimeout = '5m', lifetime = lifetimeOption(), record = recordOption() }: OwnOptions = {},
): Command {
  return addServiceOption(command)
    .option('--tag <key=value>', 'a tag of the lease; can be repeated', pair)
    .option('--start-url <url>', 'URL that the browser opens')
    .option('--headful', 'show the windows of the browsers; needs browsers of this machine (local)')
    .addOption(
      timeout('--acquire-timeout <time>', 'total time to wait for a browser: 500ms, 30s, 5m', acquireTimeout),
    )
    .addOption(
      timeout('--unreachable-timeout <time>', 'the same for a service that was never reached', '30s'),
    )
    .addOption(lifetime)
    .addOption(
      choice(
        '--release <choice>',
        'at the end; auto: reuse a browser that is healthy and cleaned up, destroy others',
        ['auto', 'reuse', 'destroy'],
      ),
    )
    .option('--release-on-crash', 'a guard process releases the browsers if this process is killed (SIGKILL)')
    .addOption(record)
    .addOption(
      choice('--replays <choice>', 'links of the recordings of each lease; record: make one', [
        'list',
        'record',
        'off',
      ]),
    );
}

function lifetimeOption(): Option {
  return new Option('--lifetime <time>', 'the most time that a lease lasts: 10m, 2h').argParser(time);
}

function recordOption(): Option {
  const about =
    'record each lease, as --replays record; failures: keep only the recordings in which something failed';
  return new Option('--record [which]', about).choices(['all', 'failures']);
}

/** Of a command of which nothing says what failed. */
export function recordAll(): Option {
  return new Option('--record [all]', 'record each lease, as --replays record').argParser((which) => {
    if (which === 'failures') throw new InvalidArgumentError(NO_FAILURES);
    if (which !== 'all') throw new InvalidArgumentError('The only choice is all.');
    return which;
  });
}

/** Adds the options of the commands whose leases have a connection of this library: what their browsers reach. */
export function addReachOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--expose-network <hosts>',
        'hosts that the browser reaches through this machine, such as localhost:3000',
      ).argParser(listOf(faultInHosts)),
    )
    .addOption(
      new Option(
        '--allow-hosts <hosts>',
        'the only hosts that the browser reaches, such as example.com,*.example.com',
      ).argParser(listOf(faultInAllowedHosts)),
    );
}

export const NO_FAILURES =
  '--record failures keeps the recordings of failed leases, and here nothing says which lease has failed. Use --record.';

/**
 * In ms: `acquire_timeout_seconds` of each acquire request. Ctrl-C waits for the answer to the request that is under
 * way, so that a browser in it is released; Docker kills a program ten seconds after SIGTERM.
 */
export const POLL_TIMEOUT = 5000;

/** The options of the library for the leases of a command. */
export function leaseSettings(options: LeaseCommandOptions) {
  const { tag: tags, name, startUrl, acquireTimeout, unreachableTimeout } = options;
  const { release, releaseOnCrash, lifetime, exposeNetwork, allowHosts: allowedHosts, record } = options;
  const replays = record === undefined ? options.replays : 'record';
  const recording = record === 'failures' ? { keepOnly: record } : undefined;
  const acquire = { tags, name, startUrl, acquireTimeout, unreachableTimeout, pollTimeout: POLL_TIMEOUT };
  return { ...acquire, release, releaseOnCrash, lifetime, replays, recording, exposeNetwork, allowedHosts };
}

/** An option with a fixed list of values, of which the first is the default. */
export function choice(flags: string, description: string, choices: readonly string[]): Option {
  return new Option(flags, description).choices(choices).default(choices[0]);
}

export function timeout(flags: string, description: string, initial: string): Option {
  return new Option(flags, description).argParser(time).default(time(initial), initial);
}

/** Parses a whole number in a range, both ends included. */
export function wholeNumberArgument(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `${least} to ${most}`;
  return (text) => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) return number;
    throw new InvalidArgumentError(`The value must be a whole number, ${range}.`);
  };
}

export function numberAboveZero(text: string): number {
  const number = text.trim() === '' ? Number.NaN : Number(text);
  if (Number.isFinite(number) && number > 0) return number;
  throw new InvalidArgumentError('The value must be a number above 0.');
}

/** Parses a time with its unit, or 0 for none. */
export function timeOrNone(text: string): number {
  return text === '0' ? 0 : time(text);
}

/** Parses a time with its unit, such as `500ms`, `30s` or `5m`, as milliseconds. */
export function time(text: string): number {
  const milliseconds = parseTime(text);
  if (milliseconds !== undefined) return milliseconds;
  throw new InvalidArgumentError('The value must be a time above 0 with its unit, such as 500ms, 30s or 5m.');
}

/** Checks a list of hosts. */
const listOf = (faultIn: (list: string) => string | undefined) => (text: string) => {
  const fault = faultIn(text);
  if (fault === undefined) return text;
  throw new InvalidArgumentError(`The value ${fault}.`);
};

/** Parses `key=value` and adds the pair to the earlier ones. */
function pair(text: string, pairs: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined)
    throw new InvalidArgumentError('The value must be key=value.');
  if (Object.hasOwn(pairs, key)) throw new InvalidArgumentError(`The key ${key} is given twice.`);
  return { ...pairs, [key]: value };
}
