import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { startProgram, variablesOf, type Environment, type Program } from '../support/program.js';

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

/** Where `npx` finds programs. Without it, each command takes half a second of processor time less. */
const PROGRAMS = resolve('node_modules/.bin');

/** Runs a command in a shell, and returns its stdout. Rejects with its output when the command fails. */
export async function runCommand(
  command: string,
  variables: Environment = {},
  cwd = process.cwd(),
): Promise<string> {
  // The variables of this test runner must not reach the runners that it starts.
  const own = Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST$|NODE_ENV$)/.test(name));
  const PATH = `${PROGRAMS}${delimiter}${process.env['PATH']}`;
  const env = { ...Object.fromEntries(own), ...variables, PATH };
  return (await promisify(execFile)('sh', ['-c', command.replaceAll('npx ', '')], { cwd, env })).stdout;
}

const SDKS = resolve('test/sdks/node_modules');

/** The path of an installed package that only tests use. Undefined if it is missing. */
export function packageOfTests(name: string): string | undefined {
  return [join(SDKS, name), resolve('node_modules', name)].find((path) => existsSync(path));
}

/** Copies a program of an example into a folder of its own, with the packages that a user installs there. Returns its path. */
export function installExample(program: string, packages: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'e-'));
  for (const name of packages) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(packageOfTests(name)!, link);
  }
  const path = join(folder, program.split('/').at(-1)!);
  copyFileSync(`examples/${program}`, path);
  return path;
}
