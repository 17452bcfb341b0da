import { startProgram, variablesOf, type Program } from '../support/program.js';

/** Milliseconds for all examples, or a whole suite: several programs one after the other, on a busy machine. */
export const EXAMPLE_TIMEOUT = 600_000;

/** Runs an example as a client of a service. */
export function startExample(
  name: string,
  service: { baseUrl: string; token: string },
  args: readonly string[] = [],
): Program {
  const command = ['--import', 'tsx', `examples/${name}.ts`, ...args];
  return startProgram(command, variablesOf(service));
}
