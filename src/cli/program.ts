import { Command } from 'commander';
import { sentence } from '../shared/errors.js';
import { VERSION } from '../shared/version.js';
import { exitCodesOf } from './errors.js';
import type { Interruption } from './interruption.js';
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

/** Creates the command line. Only commands named in the arguments are loaded, so that `--help` is fast. */
export async function createProgram(args: readonly string[], interruption: Interruption): Promise<Command> {
  const program = new Command('pooled-browser')
    .description('Leases browsers from a pool and always releases them.')
    .option('--debug', 'print the stack of an error')
    .version(VERSION, '-V, --version', 'print the version')
    .exitOverride()
    .configureOutput({ outputError: (text) => note(usageError(text)) })
    .addHelpText('after', EXAMPLES)
    .addHelpText('afterAll', ({ command }) => exitCodesOf(command.name()));
  // The script of a shell calls it.
  const isComplete = args[0] === 'complete';
  for (const [name, summary, load] of COMMANDS) {
    if (isComplete && name === 'completion') continue;
    const command = program
      .command(name)
      .summary(summary)
      .configureOutput({ outputError: (text) => note(usageError(text, name)) });
    if (isComplete || args.includes(name)) (await load()).define(command, interruption);
  }
  if (isComplete) (await import('./completion.js')).addComplete(program);
  return program;
}

/** Commander writes its suggestion on a line of its own, in brackets. */
function usageError(text: string, command?: string): string {
  const fault = sentence(oneLine(text.replace(/^error: /, '').replace('\n(', ' (')));
  const help = ['pooled-browser', ...(command ? [command] : []), '--help'].join(' ');
  return `${fault} For help, run: ${help}`;
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
