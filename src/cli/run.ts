import { EXIT } from './exit-codes.js';
import { createProgram } from './program.js';
import { reportError } from './report-error.js';

/** Runs the command line and returns its exit code. Never rejects. */
export async function run(args: readonly string[]): Promise<number> {
  const program = createProgram();
  try {
    await program.parseAsync(args, { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    return reportError(error, program.opts<{ debug?: boolean }>().debug);
  }
}
