import type { ChildProcess, ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { environment } from './environment.js';

/**
 * What differs between Node, Bun and Deno. No other file asks which of them runs this program. Their common ground is Node's
 * interface, with one more difference that an import expresses: `net/connections.ts` imports undici by its file.
 */

/** The runtime of this process, with its version. */
export const runtime = readRuntime();

function readRuntime(): { readonly name: 'Node' | 'Bun' | 'Deno'; readonly version: string } {
  // Bun and Deno also say with which version of Node they are compatible.
  const { bun, deno, node } = process.versions as NodeJS.ProcessVersions & Record<string, string | undefined>;
  if (bun !== undefined) return { name: 'Bun', version: bun };
  if (deno !== undefined) return { name: 'Deno', version: deno };
  return { name: 'Node', version: node };
}

/** A program for a process of its own: the text of a module that imports only modules of Node, or the path of a file. */
type HelperProgram = { readonly text: string } | { readonly file: string };

/** How to start a program in a process of its own. */
export interface HelperCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/**
 * How to run a program with the runtime of this process: with its certificates and proxies, without the loaders, inspectors,
 * settings and `.env` files of the application.
 *
 * @param words Arguments of the program.
 * @throws when the application is one executable file that can run only itself.
 */
export function helperCommand(program: HelperProgram, ...words: readonly string[]): HelperCommand {
  const { args: options, packages, env } = environment.forHelper();
  const command = process.execPath;
  if (runtime.name === 'Bun') {
    const { devNull } = process.getBuiltinModule('node:os');
    const settings = [...options, '--no-env-file', `--config=${devNull}`];
    const what = 'text' in program ? ['--eval', program.text] : [program.file];
    // With this variable, also an application that `bun build --compile` wrote runs as Bun.
    return { command, args: [...settings, ...what, ...words], env: { ...env, BUN_BE_BUN: '1' } };
  }
  if (isOneFile()) throw new Error(`${ONE_FILE} contains no program ${runtime.name.toLowerCase()}`);
  if (runtime.name === 'Deno') {
    const what =
      'text' in program
        ? ['eval', '--quiet', '--no-config', '--no-lock', '--ext=mjs', program.text]
        : ['run', '--quiet', '--no-lock', '--no-prompt', '--allow-all', program.file];
    return { command, args: [...what, ...words], env };
  }
  const what =
    'text' in program ? ['--input-type=module', '--eval', program.text] : [...packages, program.file];
  return { command, args: [...options, ...what, ...words], env };
}

/**
 * Starts a program that outlives Ctrl-C in the terminal of this process, and with which this process speaks over pipes. A program that
 * can't start, or ends early, is known by the end of its output.
 */
export function spawnHelper({
  command,
  args,
  env,
}: HelperCommand): ChildProcessByStdio<Writable, Readable, null> {
  const { spawn } = process.getBuiltinModule('node:child_process');
  const child = spawn(command, args, {
    detached: true,
    windowsHide: true,
    stdio: ['pipe', 'pipe', 'ignore'],
    env,
  });
  child.on('error', () => {});
  child.stdin.on('error', () => {});
  return child;
}

const ONE_FILE = 'a single executable application';

/** Its `execPath` would run the application a second time. */
function isOneFile(): boolean {
  const { Deno } = globalThis as { Deno?: { build: { standalone?: boolean } } };
  if (Deno) return Boolean(Deno.build.standalone);
  return process.getBuiltinModule('node:sea').isSea();
}

/** Streams of a child process must not keep this process alive. Bun's input of a child has no `unref`, and never does. */
export function unrefStreams(...streams: readonly (object | null)[]): void {
  for (const stream of streams as readonly ({ unref?(): void } | null)[]) stream?.unref?.();
}

/** Adds a listener that is called before the others. Deno calls the listeners of a signal in the order in which they were added. */
export function prependSignalListener(signal: NodeJS.Signals, listener: NodeJS.SignalsListener): void {
  if (runtime.name !== 'Deno') return void process.prependListener(signal, listener);
  const others = process.rawListeners(signal) as NodeJS.SignalsListener[];
  for (const other of others) process.off(signal, other);
  for (const each of [listener, ...others]) process.on(signal, each);
}

/** Sends a signal to a child. With `child.kill()`, Deno reports the signal as its end, also if the child exits with a code. */
export function signalChild({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(pid!, signal);
  } catch {
    // It has ended.
  }
}

/**
 * Calls a function before an uncaught error ends this process, where that emits no event `exit`: in Deno.
 *
 * @returns A function that stops it.
 */
export function onFatalError(onFatal: () => void): () => void {
  if (runtime.name !== 'Deno') return () => {};
  const target = globalThis as unknown as EventTarget;
  const listeners = [
    ['error', 'uncaughtException'],
    ['unhandledrejection', 'unhandledRejection'],
  ] as const;
  const stops = listeners.map(([type, nodeType]) => {
    const listener = ({ defaultPrevented }: Event) => {
      const isHandled = [nodeType, 'uncaughtException'].some((name) => process.listenerCount(name) > 0);
      if (!defaultPrevented && !isHandled) onFatal();
    };
    target.addEventListener(type, listener);
    return () => target.removeEventListener(type, listener);
  });
  return () => stops.forEach((stop) => stop());
}
