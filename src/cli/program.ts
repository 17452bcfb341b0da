import { createRequire } from 'node:module';
import { Command, CommanderError } from 'commander';
import { addDemo } from './demo/command.js';
import { EXIT, EXIT_CODES } from './exit-codes.js';
import { addInstallBrowser } from './install-browser/command.js';
import { addServe } from './serve/command.js';

const NAME = 'pooled-browser';

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
    .addHelpText('after', EXIT_CODES);
  for (const add of [addDemo, addServe, addInstallBrowser]) add(program);
  return program;
}

const EXAMPLES = `
Examples:
  $ ${NAME} demo              see the whole of it in a few seconds
  $ ${NAME} serve             a pool of two browsers on this machine
  $ ${NAME} serve --help      its options, with examples`;

/** Read when asked for: no other command pays for it. */
function printVersion(): never {
  const { version } = createRequire(import.meta.url)('../../package.json') as { version: string };
  process.stdout.write(`${version}\n`);
  throw new CommanderError(EXIT.ok, 'commander.version', version);
}
