// Starts programs with the runtime of this process.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export const HOME = dirname(createRequire(import.meta.url).resolve('pooled-browser/package.json'));
const CLI = join(HOME, 'dist/cli/main.js');
/** A program of this folder. */
export const programOf = (name, ...args) => [
  process.execPath,
  ...flags(),
  join(import.meta.dirname, name),
  ...args,
];
/** A command of the package. */
export const command = (...args) => [process.execPath, ...flags(), CLI, ...args];

function flags() {
  return process.versions.deno ? ['run', '--allow-all'] : [];
}

/** A process, with what it printed so far. */
export class Program {
  constructor([file, ...args], env = {}) {
    this.output = '';
    this.child = spawn(file, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (this.output += text));
    this.ended = new Promise((resolve) =>
      this.child.once('close', (code, signal) => resolve(signal ?? code)),
    );
  }

  /** Deno reports a signal of `child.kill()` as the end, also if the process exits with a code. */
  signal(name) {
    process.kill(this.child.pid, name);
  }

  /** Waits until it has printed what matches. */
  async printed(pattern) {
    let isOver = false;
    void this.ended.then(() => (isOver = true));
    while (!pattern.test(this.output)) {
      if (isOver) throw new Error(`The program ended early:\n${this.output}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return pattern.exec(this.output);
  }
}
