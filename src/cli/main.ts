#!/usr/bin/env node
import type { Command } from 'commander';
import { EXIT } from './errors.js';
import { Interruption } from './interruption.js';
import { createProgram, WELCOME } from './program.js';
import { reportError } from './report-error.js';

// A closed stdout or stderr (`| head`, a closed terminal) ends the program. Unhandled, the error would print a stack.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => process.exit(EXIT.failed));

// Not awaited here: a bundled command may import a part of this file, and would wait for its end.
void run(process.argv.slice(2)).then((code) => {
  // Interrupted work must not keep the program alive. The exit handlers end browsers that still run.
  if (code > EXIT.signal) process.exit(code);
  process.exitCode = code;
});

/** Runs the command line and returns its exit code. Never rejects. */
async function run(args: readonly string[]): Promise<number> {
  if (args.length === 0) {
    process.stdout.write(WELCOME);
    return EXIT.ok;
  }
  using interruption = new Interruption();
  let program: Command | undefined;
  // Without a listener, Node prints the line of the bundle that has thrown the error.
  process.on('uncaughtException', (error) => process.exit(reportError(error, program)));
  try {
    program = await createProgram(args, interruption);
    await program.parseAsync(withRecordValue(args), { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    return reportError(error, program);
  }
}

/** Adds the value that `--record` may lack. The next argument is its value only if it can be one: it can also be the pool. */
function withRecordValue(args: readonly string[]): string[] {
  const separator = args.indexOf('--');
  const isOurs = (at: number) => separator === -1 || at < separator;
  const lacksValue = (at: number) => !/^(all|failures)$/.test(args[at + 1] ?? '');
  return args.map((arg, at) => (arg === '--record' && isOurs(at) && lacksValue(at) ? '--record=all' : arg));
}
