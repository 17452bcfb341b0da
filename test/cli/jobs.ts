import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach } from 'vitest';
import { useLocalPool } from '../support/local.js';
import type { Ended, Program, ProgramOptions } from '../support/program.js';
import { runHere, startClient } from './support.js';

export interface Result {
  status: string;
  index: number;
  input: string;
  attempts: number;
  sessionId: string;
  replays?: string[];
  artifacts?: string[];
  value?: unknown;
}

/** Most tests need no particular library: this one loads in half the time of the default. */
export const LIBRARY = ['--library', 'puppeteer'];
/** A task that fetches the URL of its input, whose response the test may delay. */
export const ASKS = 'export default async ({ input, signal }) => (await fetch(input, { signal })).text();';

/** A pool for the whole test file, and a folder for the files of each test. */
export class Jobs {
  readonly #used;
  #scripts = 0;
  folder = '';
  /** A path for the results. */
  out = '';

  constructor(size = 2) {
    this.#used = useLocalPool({ pools: [{ name: 'test', size }] });
    beforeEach(() => {
      this.folder = mkdtempSync(join(tmpdir(), 'map-'));
      this.out = join(this.folder, 'results.jsonl');
    });
  }

  get local() {
    return this.#used.local;
  }

  get pool() {
    return this.#used.pool;
  }

  get leased(): number {
    return this.local.stats().leased;
  }

  readonly file = (name: string, text: string): string => {
    const path = join(this.folder, name);
    writeFileSync(path, text);
    return path;
  };

  /** Each has its own name, because a process loads a module once. */
  readonly script = (source: string): string => this.file(`task-${++this.#scripts}.mjs`, source);

  readonly inputs = (...lines: readonly unknown[]): string => this.file('inputs.txt', lines.join('\n'));

  /** Runs `map` with these arguments in this process. */
  readonly run = (words: readonly string[]): Promise<Ended> =>
    runHere(['map', 'test', ...LIBRARY, ...words], this.local);

  /** Starts `map` as a program. */
  readonly map = (words: readonly string[], options?: ProgramOptions): Program =>
    startClient(['map', 'test', ...LIBRARY, ...words], this.local, options);

  /** The stored results, in the order of the file. */
  readonly results = (path = this.out): Result[] => parse(readFileSync(path, 'utf8'));
}

export function parse(lines: string): Result[] {
  const whole = lines.split('\n').slice(0, -1);
  return whole.map((line) => JSON.parse(line) as Result);
}

export function inOrder(results: readonly Result[]): Result[] {
  return results.toSorted((one, other) => one.index - other.index);
}
