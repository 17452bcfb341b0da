import { createRequire } from 'node:module';
import { Command, CommanderError } from 'commander';
import { addAcquire } from './acquire/command.js';
import { addDemo } from './demo/command.js';
import { addDoctor } from './doctor/command.js';
import { addExec } from './exec/command.js';
import { EXIT, EXIT_CODES } from './exit-codes.js';
import { addFlush } from './flush/command.js';
import { addInstallBrowser } from './install-browser/command.js';
import { addMap } from './map/command.js';
import { addReplays } from './replays/command.js';
import { addServe } from './serve/command.js';

const NAME = 'pooled-browser';

/** In the order in which `--help` lists them. */
const COMMANDS = [
  addDemo,
  addServe,
  addExec,
  addMap,
  addAcquire,
  addFlush,
  addReplays,
  addDoctor,
  addInstallBrowser,
];

/** The command line. Every command loads its work when it is called, so that `--help` answers at once. */
export function createProgram(): Command {
  const program = new Command(NAME)
    .description('Browsers from a pool: leased, used, always given back.')
    .option('--debug', 'show where an error comes from')
    .option('-V, --version', 'print the version')
    .on('option:version', printVersion)
    .exitOverride()
    .showHelpAfterError(`(${NAME} --help says more.)`)
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, `${NAME}: `)) })
    .addHelpText('after', EXAMPLES)
    .addHelpText('afterAll', EXIT_CODES);
  for (const add of COMMANDS) add(program);
  return program;
}

const EXAMPLES = `
Examples:
  $ ${NAME} demo                       see the whole of it in a few seconds
  $ ${NAME} serve                      a pool of two browsers on this machine
  $ ${NAME} exec default -- ./job      a command in any language, with a browser of that pool
  $ ${NAME} map default job.mjs urls   a task for each line of a file, on several browsers
  $ ${NAME} doctor default             check all that a lease needs, step by step
  $ ${NAME} exec --help                its options, with examples`;

/** Read when asked for: no other command pays for it. */
function printVersion(): never {
  const { version } = createRequire(import.meta.url)('pooled-browser/package.json') as { version: string };
  process.stdout.write(`${version}\n`);
  throw new CommanderError(EXIT.ok, 'commander.version', version);
}
