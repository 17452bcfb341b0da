import { Command, Option } from 'commander';
import { sentence } from '../shared/errors.js';
import { VERSION } from '../shared/version.js';
import { exitCodesOf } from './errors.js';
import type { Interruption } from './interruption.js';
import { commandLine } from './report-error.js';
import { note, oneLine } from './terminal.js';

/** A file of a command defines its arguments, options and help, and runs it. */
interface CommandFile {
  define: (command: Command, interruption: Interruption) => void;
}

/** The commands with their summaries, in the order of `--help`. */
const COMMANDS: readonly (readonly [name: string, summary: string, load: () => Promise<CommandFile>])[] = [
  ['demo', 'show a pool, three jobs and a summary in a few seconds', () => import('./demo.js')],
  ['serve', 'serve pools of browsers of this machine', () => import('./serve.js')],
  ['exec', 'run a command with a leased browser', () => import('./exec.js')],
  ['proxy', 'serve an address at which any program gets browsers', () => import('./proxy.js')],
  ['mcp', 'serve tools with which an agent leases browsers (MCP)', () => import('./mcp.js')],
  ['map', 'run a task for each line of a file, on several browsers', () => import('./map.js')],
  ['work', 'run the task of map on another machine, with a queue', () => import('./work.js')],
  ['acquire', 'lease a browser and print its addresses', () => import('./acquire.js')],
  ['flush', 'destroy the idle browsers of a pool', () => import('./flush.js')],
  ['leases', 'list the active leases of all machines, and end them', () => import('./leases.js')],
  ['replays', 'list the recordings of a session', () => import('./replays.js')],
  ['doctor', 'check everything that a lease needs, step by step', () => import('./doctor.js')],
  [
    'install-browser',
    'install a browser on this machine, unless it has one',
    () => import('./install-browser.js'),
  ],
  ['skills', 'print the guides of this version, for agents and people', () => import('./skills.js')],
  ['completion', 'print the script that completes commands in a shell', () => import('./completion.js')],
];

/**
 * Creates the command line. Only commands named in the arguments are loaded, so that `--help` is fast; all of them for an option that
 * those do not have.
 */
export async function createProgram(args: readonly string[], interruption: Interruption): Promise<Command> {
  const program = new Command('pooled-browser')
    .description('Leases browsers from a pool and always releases them.')
    .option('--debug', 'print the stack of an error')
    .version(VERSION, '-V, --version', 'print the version')
    .exitOverride()
    .configureOutput({ outputError: (text) => note(usageError(text, program)) })
    .addHelpText('after', EXAMPLES)
    .addHelpText('afterAll', ({ command }) => exitCodesOf(command.name()));
  // The script of a shell calls it.
  const isComplete = args[0] === 'complete';
  const commands = COMMANDS.filter(([name]) => !isComplete || name !== 'completion');
  const others: (() => Promise<void>)[] = [];
  for (const [name, summary, load] of commands) {
    const command = program
      .command(name)
      .summary(summary)
      .configureOutput({ outputError: (text) => note(usageError(text, program, name)) });
    const define = async () => (await load()).define(command, interruption);
    if (isComplete || args.includes(name)) await define();
    else others.push(define);
  }
  if (isComplete) (await import('./completion.js')).addComplete(program);
  else if (hasUnknownOption(args, program)) await Promise.all(others.map((define) => define()));
  return program;
}

/** Commander adds it to each command. */
const HELP = new Option('-h, --help');

function hasUnknownOption(args: readonly string[], { options, commands }: Command): boolean {
  const known = [HELP, ...options, ...commands.flatMap((command) => command.options)];
  const end = args.indexOf('--');
  const flags = args.slice(0, end < 0 ? undefined : end).filter((arg) => arg.startsWith('-'));
  return flags.some((flag) => !known.some((option) => isFlag(option, flag.replace(/=.*/s, ''))));
}

function isFlag({ long, short }: Option, flag: string): boolean {
  return flag === long || flag === short;
}

/** Commander writes its suggestion on a line of its own, in brackets. An option that another command has needs none. */
function usageError(text: string, program: Command, command?: string): string {
  const [, flag = ''] = /^error: unknown option '(--?[\w-]+)/.exec(text) ?? [];
  const owners = program.commands.filter(({ options }) => options.some((one) => isFlag(one, flag)));
  const placed = text.replace(/'.*'(\n\(Did you mean .*\))?/, `'${flag}'.`);
  const known = owners.length === 0 ? text.replace('\n(', ' (') : placed;
  const fault = sentence(oneLine(known.replace(/^error: /, '')));
  const help = `For help, run: ${commandLine(command, '--help')}`;
  return [fault, ...whereItIs(owners.map((one) => one.name())), help].join(' ');
}

function whereItIs(names: readonly string[]): string[] {
  if (names.length < 2) return names.map((name) => `The command ${name} has it.`);
  return [`The commands ${names.slice(0, -1).join(', ')} and ${names.at(-1)} have it.`];
}

const EXAMPLES = `
Examples:
  $ pooled-browser demo                       show everything in a few seconds
  $ pooled-browser serve                      serve a pool of two browsers on this machine
  $ pooled-browser exec default -- ./job      run a command in any language with a browser
  $ pooled-browser map default job.mjs urls   run a task for each line of a file
  $ pooled-browser doctor default             check everything that a lease needs
  $ pooled-browser exec --help                show the options and examples of a command`;

/** What the command says without arguments. */
export const WELCOME = `pooled-browser leases browsers from a pool and always releases them.

Try it:
  pooled-browser demo                             three jobs on two browsers of this machine, and their replays

Use it, with browsers of this machine (the pool local) or of a service (pooled-browser doctor POOL):
  pooled-browser exec local -- python3 job.py     a program in any language gets a browser
  pooled-browser map local task.mjs urls.txt      a task for each line of a file, on several browsers
  pooled-browser proxy local                      an address at which any program gets browsers
  pooled-browser mcp local                        the same for an agent, as tools

In code: import { withPooledBrowser } from 'pooled-browser/playwright'
Guides: pooled-browser skills. All commands: pooled-browser --help
`;
